-- A user's session in a real Neovim. Environment: PLUGIN, PYTHON, SERVER, FILE.
local function say(...)
  io.stdout:write("[e2e] ", table.concat({ ... }, " "), "\n")
end

local function fail(what)
  say("FAIL", what)
  vim.cmd("cquit 1")
end

local function wait(what, ready)
  local good, result = pcall(vim.wait, 20000, ready, 20)
  if not good or not result then
    for _, d in ipairs(vim.diagnostic.get(0)) do
      say("diagnostic", tostring(d.code), d.message)
    end
    fail(what .. " " .. tostring(result))
  end
  say("ok", what)
end

local progress, said = {}, {}
vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    table.insert(progress, event.data.params.value)
  end,
})
vim.notify = function(message)
  table.insert(said, message)
end

vim.opt.runtimepath:prepend(vim.env.PLUGIN)
vim.g.kernel_lsp_no_auto = true
vim.cmd("runtime plugin/kernel_lsp.lua")
local function settings(scenario)
  return { kernelLsp = { device = "0", worker = { env = { FAKE_HOST = scenario } } } }
end
vim.lsp.config("kernel_lsp", {
  cmd = { vim.env.PYTHON, vim.env.SERVER },
  root_markers = { "k.py" },
  settings = settings("improve"),
})
vim.lsp.enable("kernel_lsp")
vim.cmd.edit(vim.env.FILE)
vim.bo.filetype = "python"
local buffer = vim.api.nvim_get_current_buf()

local function client()
  return vim.lsp.get_clients({ name = "kernel_lsp", bufnr = buffer })[1]
end
local function shown(code, pattern)
  return function()
    for _, d in ipairs(vim.diagnostic.get(buffer)) do
      if d.code == code and d.message:find(pattern, 1, true) then
        return true
      end
    end
    return false
  end
end
local function ended(pattern)
  return function()
    local last = progress[#progress]
    return last and last.kind == "end" and last.message:find(pattern, 1, true) ~= nil
  end
end
local function lens(pattern)
  return function()
    for _, item in ipairs(vim.lsp.codelens.get(buffer)) do
      if item.command and item.command.title:find(pattern, 1, true) then
        return true
      end
    end
    return false
  end
end
local function act(pattern)
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.title:find(pattern, 1, true) ~= nil
    end,
  })
end
local function block()
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n"):match("BLOCK = (%d+)")
end

wait("attached", function()
  return client() and client().initialized
end)
vim.api.nvim_win_set_cursor(0, { 7, 0 })
wait("not trusted", shown("KL002", "not trusted"))
wait("lens without trust", lens("not trusted"))
vim.cmd("Kernel explain")
wait("explained", function()
  return vim.iter(said):any(function(message)
    return message:find("not trusted", 1, true) ~= nil
  end) or vim.fn.execute("messages"):find("not trusted", 1, true) ~= nil
end)
vim.cmd("Kernel trust")
wait("lens", lens("not profiled"))

act("Optimize double_kernel" )
if vim.fn.glob("/dev/nvidia[0-9]*") == "" then
  act("Find CPU-checked rewrites for double_kernel")
end
wait("progress end", ended("1.82x verified"))
if progress[1].kind ~= "begin" or progress[1].title ~= "Optimize double_kernel" then
  fail("progress begins with a title")
end
wait("summary", shown("KL001", "1.82x verified rewrite available"))
wait("lens with result", lens("1.82x available · Review"))

vim.cmd("Kernel review")
wait("review windows", function()
  return #vim.api.nvim_tabpage_list_wins(0) == 3
end)
local texts = {}
for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
  table.insert(texts, table.concat(lines, "\n"))
end
local all = table.concat(texts, "\n")
for _, wanted in ipairs({ "95% interval", "BLOCK = 256", "BLOCK = 128" }) do
  if not all:find(wanted, 1, true) then
    fail("the review lacks " .. wanted)
  end
end
require("kernel_lsp.review").close()
if #vim.api.nvim_tabpage_list_wins(0) ~= 1 or vim.wo.diff then
  fail("the review closes")
end

act("Apply 1.82x rewrite of double_kernel")
wait("applied by action", function()
  return block() == "256"
end)
wait("applied is known", shown("KL001", "applied"))
vim.cmd("undo")
wait("undone", function()
  return block() == "128"
end)
wait("offered again", shown("KL001", "available"))
vim.cmd("Kernel apply")
wait("applied by command", function()
  return block() == "256"
end)
wait("applied is known again", shown("KL001", "applied"))
vim.cmd("silent undo")
wait("undone again", shown("KL001", "available"))
if vim.fn.execute("messages"):find("not as expected", 1, true) then
  fail("the server did not see its own edit arrive")
end
if vim.fn.readfile(vim.env.FILE)[18] ~= "    BLOCK = 128" then
  fail("the file on disk was written")
end

client().settings = settings("slow")
client():notify("workspace/didChangeConfiguration", { settings = settings("slow") })
progress = {}
vim.cmd("Kernel optimize")
wait("running", function()
  return #progress > 2
end)
vim.cmd("Kernel cancel")
wait("cancelled", ended("cancelled; 1 verified candidate kept (1.82x)"))
local count = #progress
vim.wait(700)
if #progress ~= count then
  fail("something followed the end")
end
vim.cmd("checkhealth kernel_lsp")
wait("health", function()
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  return table.concat(lines, "\n"):find("attached: version", 1, true) ~= nil
end)
say("PASS")
vim.cmd("qa!")
