-- A user's session with one kernel. Environment: KERNEL_DEMO_FILE, _PLUGIN, _PYTHON.
local started = vim.uv.hrtime()
local function say(...)
  local seconds = (vim.uv.hrtime() - started) / 1e9
  io.stdout:write(string.format("[%5.1f s] ", seconds), table.concat({ ... }, " "), "\n")
  io.stdout:flush()
end
local function wait(what, seconds, ready)
  if not vim.wait(seconds * 1000, ready, 50) then
    say("FAILED: no " .. what .. " after " .. seconds .. " s")
    vim.cmd("cquit 1")
  end
end

local last
vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    local value = event.data.params.value
    last = value
    local percentage = value.percentage and (value.percentage .. " % ") or ""
    say("progress:", percentage .. (value.message or value.title or ""))
  end,
})

vim.opt.runtimepath:prepend(vim.env.KERNEL_DEMO_PLUGIN)
vim.cmd("runtime plugin/kernel_lsp.lua")
vim.lsp.config("kernel_lsp", {
  cmd = { vim.env.KERNEL_DEMO_PYTHON, "-m", "kernel_lsp.cli", "serve" },
  settings = {
    kernelLsp = { effort = "quick", worker = { python = vim.env.KERNEL_DEMO_PYTHON } },
  },
})
vim.lsp.enable("kernel_lsp")
vim.cmd.edit(vim.env.KERNEL_DEMO_FILE)
vim.bo.filetype = "python"
local buffer = vim.api.nvim_get_current_buf()

local function client()
  return vim.lsp.get_clients({ name = "kernel_lsp", bufnr = buffer })[1]
end
local function diagnostics()
  for _, item in ipairs(vim.diagnostic.get(buffer)) do
    say("diagnostic:", "line " .. (item.lnum + 1), tostring(item.code), item.message)
  end
end
local function lenses()
  for _, item in ipairs(vim.lsp.codelens.get(buffer)) do
    if item.command then
      say("lens:", item.command.title)
    end
  end
end
local function has_lens(pattern)
  return function()
    for _, item in ipairs(vim.lsp.codelens.get(buffer)) do
      if item.command and item.command.title:find(pattern) then
        return true
      end
    end
    return false
  end
end

-- Code actions at the cursor; `on_action` of the one whose title matches is run.
local function actions()
  local parameters = vim.lsp.util.make_range_params(0, client().offset_encoding)
  parameters.context = { diagnostics = {} }
  local answer = client():request_sync("textDocument/codeAction", parameters, 5000, buffer)
  return answer and answer.result or {}
end
local function offered(pattern)
  for _, action in ipairs(actions()) do
    if action.title:find(pattern) and not action.disabled then
      return action.title
    end
  end
end
local function act(pattern)
  local title = offered(pattern)
  if not title then
    say("FAILED: no action like " .. pattern)
    vim.cmd("cquit 1")
  end
  say("action:", title)
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.title == title
    end,
  })
  return title
end

wait("server", 30, function()
  return client() and client().initialized
end)
say("opened", vim.fn.fnamemodify(vim.env.KERNEL_DEMO_FILE, ":t"))
local line = vim.fn.search("^def .*_kernel(")
vim.api.nvim_win_set_cursor(0, { math.max(line, 1), 4 })
wait("lens", 10, has_lens("."))
lenses()
say("the workspace is new, so nothing runs until it is trusted")
vim.cmd("Kernel trust")
wait("lens after trust", 10, function()
  return not has_lens("not trusted")()
end)
lenses()
diagnostics()

wait("action", 10, function()
  return offered("^Optimize ") or offered("^Find CPU")
end)
act(offered("^Optimize ") and "^Optimize " or "^Find CPU")
wait("end of the run", 240, function()
  return last and last.kind == "end"
end)
wait("offer", 10, function()
  return offered("^Apply ")
end)
lenses()
diagnostics()

vim.cmd("Kernel review")
wait("review", 10, function()
  return #vim.api.nvim_tabpage_list_wins(0) > 1
end)
for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local shown = vim.api.nvim_win_get_buf(window)
  if not vim.wo[window].diff then
    say("evidence:")
    for _, text in ipairs(vim.api.nvim_buf_get_lines(shown, 0, -1, false)) do
      io.stdout:write("    ", text, "\n")
    end
  end
end
require("kernel_lsp.review").close()

local before = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
act("^Apply ")
wait("edit", 10, function()
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n") ~= before
end)
wait("applied", 10, function()
  for _, item in ipairs(vim.diagnostic.get(buffer)) do
    if item.message:find("applied") then
      return true
    end
  end
  return has_lens("applied")() or not offered("^Apply ")
end)
lenses()
diagnostics()
vim.cmd("silent write")
say("saved; one undo would take the whole edit back")
vim.cmd("qa!")
