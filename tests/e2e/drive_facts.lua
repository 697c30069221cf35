-- Findings in a real Neovim, with the real compiler. Environment: PLUGIN, PYTHON, FILE.
local function say(...)
  io.stdout:write("[e2e] ", table.concat({ ... }, " "), "\n")
  io.stdout:flush()
end
local buffer
local function fail(what)
  for _, d in ipairs(vim.diagnostic.get(buffer)) do
    say("diagnostic", tostring(d.lnum + 1), tostring(d.code), d.message)
  end
  say("FAIL", what)
  vim.cmd("cquit 1")
end
local function wait(what, ready, seconds)
  if not vim.wait((seconds or 30) * 1000, ready, 50) then
    fail(what)
  end
  say("ok", what)
end

local last
vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    last = event.data.params.value
  end,
})
vim.notify = function() end
vim.opt.runtimepath:prepend(vim.env.PLUGIN)
vim.g.kernel_lsp_no_auto = true
vim.cmd("runtime plugin/kernel_lsp.lua")
vim.lsp.config("kernel_lsp", {
  cmd = { vim.env.PYTHON, "-m", "kernel_lsp.cli", "serve" },
  root_markers = { "softmax.py" },
  settings = { kernelLsp = { effort = "thorough", worker = { python = vim.env.PYTHON } } },
})
vim.lsp.enable("kernel_lsp")
vim.cmd.edit(vim.env.FILE)
vim.bo.filetype = "python"
buffer = vim.api.nvim_get_current_buf()

local function client()
  return vim.lsp.get_clients({ name = "kernel_lsp", bufnr = buffer })[1]
end
local function with(severity)
  local found = {}
  for _, d in ipairs(vim.diagnostic.get(buffer)) do
    if d.severity == severity then
      table.insert(found, d)
    end
  end
  return found
end
local function summary(pattern)
  return function()
    for _, d in ipairs(vim.diagnostic.get(buffer)) do
      if d.code == "KL001" and d.message:find(pattern) then
        return true
      end
    end
    return false
  end
end
local hint = vim.diagnostic.severity.HINT
local function go(pattern)
  local line = vim.fn.search(pattern, "w")
  if line == 0 then
    fail("no line like " .. pattern)
  end
  vim.api.nvim_win_set_cursor(0, { line, 4 })
  return line
end
local function titles()
  local parameters = vim.lsp.util.make_range_params(0, client().offset_encoding)
  parameters.context = { diagnostics = {} }
  local answer = client():request_sync("textDocument/codeAction", parameters, 5000, buffer)
  return vim.tbl_map(function(action)
    return action.title
  end, answer and answer.result or {})
end

wait("attached", function()
  return client() and client().initialized
end)
local def = go("^def softmax_kernel")
vim.cmd("Kernel trust")
wait("figures of the compiler", summary("registers, %d+ %% occupancy"), 150)
if #with(hint) ~= 0 then
  fail("hints are shown unasked")
end

vim.cmd("Kernel details")
wait("details", function()
  return #with(hint) > 0
end)
for _, d in ipairs(with(hint)) do
  say("hint", tostring(d.lnum + 1), tostring(d.code), d.message)
  if d.lnum + 1 < def or d.source ~= "kernel-lsp" then
    fail("a hint outside the kernel")
  end
end

go("tl.load")
local position = vim.lsp.util.make_position_params(0, client().offset_encoding)
local hover = client():request_sync("textDocument/hover", position, 5000, buffer)
local text = hover and hover.result and hover.result.contents.value or ""
if not text:find("loads? of %d+ B") then
  fail("hover over a load says: " .. text)
end
say("hover", (text:gsub("\n", " / ")))

vim.cmd("Kernel listing")
wait("machine code", function()
  return #vim.api.nvim_tabpage_list_wins(0) == 2 and vim.bo.filetype == "asm"
end)
if vim.bo.modifiable or not vim.api.nvim_get_current_line():find("%S") then
  fail("the listing is read-only, at a row of the line")
end
local row = vim.api.nvim_win_get_cursor(0)[1]
say("row", tostring(row), vim.api.nvim_get_current_line())
if row < 3 then
  fail("the row of the line was not found")
end
vim.cmd("close")

local answered
for _, d in ipairs(with(hint)) do
  vim.api.nvim_win_set_cursor(0, { d.lnum + 1, 4 })
  for _, title in ipairs(titles()) do
    if title:find("^Try ") then
      answered = title
    end
  end
  if answered then
    break
  end
end
if not answered then
  fail("no finding offers its rule")
end
say("action", answered)
vim.lsp.buf.code_action({
  apply = true,
  filter = function(action)
    return action.title == answered
  end,
})
wait("the run of that rule searches", function()
  return last and last.message and last.message:find("tried") ~= nil
end, 150)
vim.cmd("Kernel cancel")
wait("cancelled", function()
  return last.kind == "end"
end)

vim.api.nvim_win_set_cursor(0, { def, 4 })
vim.cmd("Kernel details")
wait("details hidden", function()
  return #with(hint) == 0
end)
vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { "# a new first line", "" })
wait("the summary moves with the kernel", function()
  for _, d in ipairs(vim.diagnostic.get(buffer)) do
    if d.code == "KL001" and d.lnum == def + 1 then
      return true
    end
  end
end)
say("PASS")
vim.cmd("qa!")
