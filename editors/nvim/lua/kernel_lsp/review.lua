-- An offered rewrite beside the user's file: a vertical diff, with the evidence above it.
local M = {}

local state = nil

local function scratch(name, lines, filetype)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].bufhidden = "wipe"
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = filetype
  pcall(vim.api.nvim_buf_set_name, bufnr, name)
  return bufnr
end

local function lines_of(text)
  local lines = vim.split(text, "\r?\n")
  if lines[#lines] == "" then
    table.remove(lines)
  end
  return lines
end

--- Open the diff. `review` is the server's answer to `kernelLsp.review`.
function M.open(review)
  M.close()
  local file = vim.api.nvim_get_current_win()
  local name = ("kernel://%s/%s"):format(review.runId, review.candidateId)
  local candidate = scratch(name, lines_of(review.candidate), "python")
  vim.cmd("leftabove vertical sbuffer " .. candidate)
  local left = vim.api.nvim_get_current_win()
  vim.cmd("diffthis")
  vim.api.nvim_win_call(file, function()
    vim.cmd("diffthis")
  end)
  local evidence = lines_of(review.title .. "\n" .. review.evidence)
  table.insert(evidence, "")
  table.insert(evidence, ":Kernel apply takes it, q closes")
  vim.cmd("topleft sbuffer " .. scratch(name .. "/evidence", evidence, "text"))
  local above = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_height(above, math.min(#evidence, 12))
  state = { review = review, file = file, windows = { left, above } }
  for _, window in ipairs(state.windows) do
    local bufnr = vim.api.nvim_win_get_buf(window)
    vim.keymap.set("n", "q", M.close, { buffer = bufnr, nowait = true })
  end
  vim.api.nvim_set_current_win(file)
end

--- The review on screen, or nil.
function M.current()
  if state and not vim.api.nvim_win_is_valid(state.windows[1]) then
    state = nil
  end
  return state and state.review
end

--- Close both windows and leave diff mode in the user's.
function M.close()
  if not state then
    return
  end
  local open = state
  state = nil
  for _, window in ipairs(open.windows) do
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end
  if vim.api.nvim_win_is_valid(open.file) then
    vim.api.nvim_win_call(open.file, function()
      vim.cmd("diffoff")
    end)
    vim.api.nvim_set_current_win(open.file)
  end
end

return M
