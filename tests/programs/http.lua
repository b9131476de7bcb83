-- wrk: each request has another number, and its answer is looked at.
local threads, n = {}, 0
wrong = 0
function setup(thread) table.insert(threads, thread) end
function request()
    n = n + 1
    return wrk.format('GET', '/' .. n % 1000)
end
function response(status, headers, body)
    local k, square = body:match('^(%d+) squared is (%d+)\n$')
    if status ~= 200 or not k or k * k ~= tonumber(square) then wrong = wrong + 1 end
end
function done(summary)
    local e, bad = summary.errors, 0
    for _, t in ipairs(threads) do bad = bad + t:get('wrong') end
    io.write(string.format('%d requests, %d wrong, %d refused, %d broken\n', summary.requests, bad,
                           e.connect, e.read + e.write + e.status))
end
