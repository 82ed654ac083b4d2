// A real PLC directory, a real PDS and, where DB_POSTGRES_URL names a database for it, a real AppView on
// loopback, and a control server for the test beside them.
//
// Ports are free ones. One line of JSON on standard output says where everything is; the process
// ends when its standard input does, so that it cannot outlive the test that started it.
import http from 'node:http'
import net from 'node:net'
import { seed } from './seed.mjs'

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

const dev = await import('@atproto/dev-env')
const { AtpAgent } = await import('@atproto/api')

const BYPASS = 'the owners'
const limits = { hostname: 'localhost', rateLimitsEnabled: true, rateLimitBypassKey: BYPASS }

// The network of the packages, but for the moderators' own service: nobody needs it here.
const withAppView = async (database) => {
  const free = (await import('get-port')).default
  const plc = await dev.TestPlc.create({})
  const port = await free()
  // Digits are not allowed in names of schemas.
  const name = process.pid.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[digit])
  // What people mute is kept by a service of its own, without which newer AppViews do not start.
  const bsync = await dev.TestBsync.create({ apiKeys: [BYPASS], dbUrl: database, dbSchema: `bsync_${name}` })
  const bsky = await dev.TestBsky.create({
    plcUrl: plc.url,
    pdsPort: port,
    repoProvider: `ws://localhost:${port}`,
    dbPostgresUrl: database,
    dbPostgresSchema: `appview_${name}`,
    redisHost: 'unused.invalid',
    bsyncUrl: bsync.url,
    bsyncApiKey: BYPASS,
  })
  const pds = await dev.TestPds.create({
    port,
    didPlcUrl: plc.url,
    bskyAppViewUrl: bsky.url,
    bskyAppViewDid: bsky.ctx.cfg.serverDid,
    ...limits,
  })
  dev.mockNetworkUtilities(pds, bsky)
  return { plc, pds, bsky }
}

const database = process.env.DB_POSTGRES_URL
const network = database
  ? await withAppView(database)
  : await dev.TestNetworkNoAppView.create({ pds: limits })
const pds = network.pds.url.replace('localhost', '127.0.0.1')

// What was asked of which server, and the last session that the PDS gave out to anybody but the owners.
const calls = {}
const refused = {}
let session
const owners = new Map()
const OWNER = 'an owner'
const count = (server, prefix) =>
  server.prependListener('request', (request, response) => {
    // The servers ask one another, too.
    if (!/kittiwake/i.test(request.headers['user-agent'] ?? '')) return
    const { pathname } = new URL(request.url, pds)
    const name = prefix + pathname.replace('/xrpc/', '').replace(/^\/did(:|%3A).*/i, 'document')
    calls[name] = (calls[name] ?? 0) + 1
    response.on('finish', () => {
      if (response.statusCode === 429) refused[name] = (refused[name] ?? 0) + 1
    })
  })
count(network.pds.server.server, '')
count(network.plc.server.server, 'plc:')
if (network.bsky) count(network.bsky.server.server, 'appview:')
network.pds.server.server.prependListener('request', (request, response) => {
  if (request.headers['user-agent'] === OWNER) return
  const { pathname } = new URL(request.url, pds)
  const name = pathname.replace('/xrpc/', '')
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
  headers.set('x-ratelimit-bypass', BYPASS)
  return fetch(address, { ...options, headers })
}

// Waits until the AppView has seen all that the PDS has.
const indexed = async () => {
  await network.pds.processAll()
  const last = await network.pds.ctx.sequencer.curr()
  const { sub } = network.bsky
  for (let tries = 0; tries < 2_000; tries++) {
    await sub.processAll()
    const cursor = await (sub.runner ?? sub).getCursor()
    if (cursor >= last) return
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error('the AppView does not catch up')
}

const actions = {
  calls: async () => calls,
  refused: async () => refused,
  // Fills the network; says what is in it.
  seed: async ({ accounts }) => {
    const truth = await seed({ network, pds, fetchAsOwner, owners, accounts: Number(accounts) })
    await indexed()
    return truth
  },
  // One more post of somebody.
  post: async ({ did, text }) => {
    const record = { text, createdAt: new RealDate().toISOString() }
    await owners.get(did).agent.post(record)
    await indexed()
    return {}
  },
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
  const local = (url) => url?.replace('localhost', '127.0.0.1')
  const found = { pds, control: place, plc: local(network.plc.url), appview: local(network.bsky?.url) }
  process.stdout.write(`${JSON.stringify({ ...found, pdsHost: new URL(network.pds.url).host })}\n`)
})
