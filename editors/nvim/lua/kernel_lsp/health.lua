-- :checkhealth kernel_lsp
local M = {}

function M.check()
  local health = vim.health
  health.start("kernel-lsp")
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  else
    health.error("Neovim 0.11 or newer is needed")
    return
  end
  local configuration = vim.lsp.config.kernel_lsp
  local program = configuration and configuration.cmd and configuration.cmd[1]
  if program and vim.fn.executable(program) == 1 then
    health.ok("server: " .. vim.fn.exepath(program))
  else
    health.error(
      ("%s is not on PATH"):format(program or "the server"),
      "pip install kernel-lsp, or set vim.lsp.config('kernel_lsp', { cmd = … })"
    )
  end
  local clients = vim.lsp.get_clients({ name = "kernel_lsp" })
  if #clients == 0 then
    health.warn("not attached", "open a Python file")
    return
  end
  for _, client in ipairs(clients) do
    local info = client.server_info or {}
    health.ok(("attached: version %s, %s"):format(info.version or "?", client.offset_encoding))
    local params = { command = "kernelLsp.report", arguments = { vim.empty_dict() } }
    local answer = client:request_sync("workspace/executeCommand", params, 5000)
    if answer and answer.result then
      health.info(answer.result.report)
    else
      health.error("the server does not answer")
    end
  end
end

return M
