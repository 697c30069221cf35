-- Client configuration for `vim.lsp.enable("kernel_lsp")`; needs Neovim 0.11.
-- This file alone is enough: the rest of the plugin adds `:Kernel`, the diff view and lenses.
return {
  cmd = { "kernel-lsp", "serve" },
  filetypes = { "python" },
  root_markers = { "pyproject.toml", "setup.py", ".git" },
  settings = { kernelLsp = vim.empty_dict() },
  capabilities = {
    -- Other Python servers speak UTF-16; one encoding for a buffer keeps Neovim quiet.
    general = { positionEncodings = { "utf-16" } },
    -- The plugin shows reviews itself, so the server writes no .diff file.
    experimental = { kernelLsp = { review = vim.g.loaded_kernel_lsp == 1 } },
  },
}
