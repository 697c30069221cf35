-- The subcommands of `:Kernel`.
local M = {}

local function client_of(bufnr)
  return vim.lsp.get_clients({ name = "kernel_lsp", bufnr = bufnr })[1]
    or vim.lsp.get_clients({ name = "kernel_lsp" })[1]
end

local function tell(message, level)
  vim.notify("kernel-lsp: " .. message, level or vim.log.levels.INFO)
end

-- The kernel under the cursor is found by the server, which has parsed the file.
local function place(bufnr)
  return {
    uri = vim.uri_from_bufnr(bufnr),
    line = vim.api.nvim_win_get_cursor(0)[1] - 1,
  }
end

--- Run a server command. `done(result)` is called unless the server refuses, which is shown.
function M.command(name, argument, done, client)
  local bufnr = vim.api.nvim_get_current_buf()
  client = client or client_of(bufnr)
  if not client then
    tell("no server is attached; see :checkhealth kernel_lsp", vim.log.levels.WARN)
    return
  end
  local params = { command = "kernelLsp." .. name, arguments = { argument } }
  client:request("workspace/executeCommand", params, function(problem, result)
    if problem then
      tell(problem.message, vim.log.levels.WARN)
    elseif done then
      done(result)
    end
  end, bufnr)
end

--- Show an offer as a diff: `argument` names it, or the best one at the cursor is taken.
function M.review(argument, client_id)
  local client = client_id and vim.lsp.get_client_by_id(client_id)
  M.command("review", argument, function(result)
    require("kernel_lsp.review").open(result)
  end, client)
end

--- Show the machine code of a line beside the file; `argument` names kernel, line and target.
function M.listing(argument, client_id)
  local client = client_id and vim.lsp.get_client_by_id(client_id)
  argument = vim.tbl_extend("force", argument, { quiet = true })
  M.command("listing", argument, function(result)
    vim.cmd("botright split " .. vim.fn.fnameescape(result.path))
    vim.bo.readonly, vim.bo.modifiable, vim.bo.filetype = true, false, "asm"
    vim.api.nvim_win_set_cursor(0, { math.min(result.row + 1, vim.fn.line("$")), 0 })
  end, client)
end

local function here(name, done)
  return function()
    local open = require("kernel_lsp.review").current()
    local argument = open and { runId = open.runId, candidateId = open.candidateId }
    if name == "apply" and argument then
      require("kernel_lsp.review").close()
      M.command(name, argument, done)
      return
    end
    M.command(name, place(vim.api.nvim_get_current_buf()), done)
  end
end

local function show_report(result)
  vim.cmd("botright new")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(result.report, "\n"))
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.filetype = "nofile", "wipe", "markdown"
  vim.bo.modified = false
end

local subcommands = {
  optimize = here("optimize"),
  cancel = function()
    M.command("cancel", vim.empty_dict(), function(result)
      if not result.cancelled then
        tell("nothing is running")
      end
    end)
  end,
  review = function()
    M.review(place(vim.api.nvim_get_current_buf()))
  end,
  apply = here("apply"),
  details = here("details", function(result)
    tell(result.shown and "performance details are shown" or "performance details are hidden")
  end),
  listing = function()
    M.listing(place(vim.api.nvim_get_current_buf()))
  end,
  declare = here("declareWorkload"),
  trust = here("trustWorkspace", function(result)
    if result.trusted then
      tell("trusted: " .. result.root)
    end
  end),
  explain = here("explain"),
  report = here("report", show_report),
}

function M.run(name)
  local subcommand = subcommands[name]
  if not subcommand then
    tell("no such subcommand: " .. tostring(name), vim.log.levels.ERROR)
    return
  end
  subcommand()
end

function M.complete(lead)
  local names = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(subcommands))
  table.sort(names)
  return names
end

--- Lenses: Neovim 0.12 keeps them fresh itself, 0.11 has to be asked.
function M.attached(bufnr)
  if vim.lsp.codelens.enable then
    vim.lsp.codelens.enable(true, { bufnr = bufnr })
    return
  end
  local function refresh()
    vim.lsp.codelens.refresh({ bufnr = bufnr })
  end
  vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave", "TextChanged" }, {
    buffer = bufnr,
    callback = refresh,
  })
  -- A publish follows each result, and 0.11 does not know `workspace/codeLens/refresh`.
  vim.api.nvim_create_autocmd("DiagnosticChanged", { buffer = bufnr, callback = refresh })
  refresh()
end

return M
