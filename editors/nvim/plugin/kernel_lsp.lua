-- `:Kernel`, lenses, and the client itself unless `vim.g.kernel_lsp_no_auto` is set.
if vim.g.loaded_kernel_lsp == 1 then
  return
end
vim.g.loaded_kernel_lsp = 1

vim.api.nvim_create_user_command("Kernel", function(options)
  require("kernel_lsp").run(options.fargs[1])
end, {
  nargs = 1,
  desc = "Optimize GPU kernels",
  complete = function(lead)
    return require("kernel_lsp").complete(lead)
  end,
})

for _, name in ipairs({ "optimize", "cancel", "review", "apply", "details", "listing" }) do
  vim.keymap.set("n", "<Plug>(kernel-" .. name .. ")", "<Cmd>Kernel " .. name .. "<CR>")
end

vim.lsp.commands["kernelLsp.review"] = function(command, context)
  require("kernel_lsp").review(command.arguments[1], context.client_id)
end

vim.lsp.commands["kernelLsp.listing"] = function(command, context)
  require("kernel_lsp").listing(command.arguments[1], context.client_id)
end

vim.api.nvim_create_autocmd("LspAttach", {
  group = vim.api.nvim_create_augroup("kernel_lsp", {}),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == "kernel_lsp" then
      require("kernel_lsp").attached(event.buf)
    end
  end,
})

if not vim.g.kernel_lsp_no_auto then
  vim.lsp.enable("kernel_lsp")
end
