// A real PLC directory and a real PDS on loopback, and a control server for the test beside them.
//
// Ports are free ones. One line of JSON on standard output says where everything is; the process
// ends when its standard input does, so that it cannot outlive the test that started it.
import http from 'node:http'
import net from 'node:net'

// The packages listen on every interface.
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (...given) {
  const place = typeof given[0] === 'object' ? given[0] : { port: Number(given[0]) || 0 }
  const then = given.filter((one) => typeof one === 'function')
  return listen.call(this, { ...place, host: '127.0.0.1' }, ...then)
}

// The servers' clock can be moved on, so that tokens expire without anybody waiting for it.
const RealDate = Date
let aheadMs = 0
globalThis.Date = class Date extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + aheadMs)
    else super(...given)
  }
  static now() {
    return RealDate.now() + aheadMs
  }
}

process.stdin.resume()
process.stdin.on('end', () => process.exit(0))

const { TestNetworkNoAppView } = await import('@atproto/dev-env')
const { AtpAgent } = await import('@atproto/api')

const network = await TestNetworkNoAppView.create({
  pds: { hostname: 'localhost', rateLimitsEnabled: true },
})
const pds = network.pds.url.replace('localhost', '127.0.0.1')

// What was asked of the PDS, and the last session that it gave out to anybody but the owners.
const calls = {}
let session
const owners = new Map()
const OWNER = 'an owner'
network.pds.server.server.prependListener('request', (request, response) => {
  if (request.headers['user-agent'] === OWNER) return
  const { pathname } = new URL(request.url, pds)
  const name = pathname.replace('/xrpc/', '')
  calls[name] = (calls[name] ?? 0) + 1
  if (!/\.(create|refresh)Session$/.test(name)) return
  const parts = []
  for (const step of ['write', 'end']) {
    const original = response[step]
    response[step] = function (part, ...rest) {
      if (typeof part === 'string' || part instanceof Uint8Array) parts.push(Buffer.from(part))
      return original.call(this, part, ...rest)
    }
  }
  response.on('finish', () => {
    if (response.statusCode === 200) session = JSON.parse(Buffer.concat(parts).toString())
  })
})

const fetchAsOwner = (address, options) => {
  const headers = new Headers(options?.headers ?? address.headers)
  headers.set('user-agent', OWNER)
  return fetch(address, { ...options, headers })
}

const actions = {
  calls: async () => calls,
  // Moves the clock to so many seconds before or behind the true time.
  clock: async ({ ahead }) => {
    aheadMs = Number(ahead) * 1000
    return {}
  },
  // Somebody with some posts.
  account: async ({ handle, password, posts }) => {
    const agent = new AtpAgent({ service: pds, fetch: fetchAsOwner })
    await agent.createAccount({ handle, password, email: `${handle}@example.com` })
    for (let number = 0; number < Number(posts); number++) {
      await agent.com.atproto.repo.createRecord({
        repo: agent.did,
        collection: 'app.bsky.feed.post',
        record: { text: `post ${number}`, createdAt: new RealDate().toISOString() },
      })
    }
    owners.set(handle, { agent, password })
    return { did: agent.did }
  },
  appPassword: async ({ handle, name }) => {
    const { agent } = owners.get(handle)
    const made = await agent.com.atproto.server.createAppPassword({ name })
    return { password: made.data.password }
  },
  revokeAppPassword: async ({ handle, name }) => {
    const { agent, password } = owners.get(handle)
    // Their own session may be over: the clock was moved.
    await agent.login({ identifier: handle, password })
    await agent.com.atproto.server.revokeAppPassword({ name })
    return {}
  },
  // Ends the last session that was given out, as its owner would.
  deleteSession: async () => {
    const address = `${pds}/xrpc/com.atproto.server.deleteSession`
    const headers = { authorization: `Bearer ${session.refreshJwt}` }
    const answer = await fetchAsOwner(address, { method: 'POST', headers })
    return { status: answer.status }
  },
}

const control = http.createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://control')
  const action = actions[pathname.slice(1)]
  let answer
  try {
    answer = action ? await action(Object.fromEntries(searchParams)) : undefined
  } catch (error) {
    process.stderr.write(`${error.stack}\n`)
  }
  response.statusCode = answer ? 200 : 500
  response.end(JSON.stringify(answer ?? {}))
})
control.listen(0, () => {
  const place = `http://127.0.0.1:${control.address().port}`
  process.stdout.write(`${JSON.stringify({ pds, control: place })}\n`)
})
