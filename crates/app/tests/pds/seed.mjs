// Fills a network with people, and keeps the books: what is in it is known by what was put there.
import { AtpAgent } from '@atproto/api'

const PASSWORD = 'planted-password-0001'
// Writes of one account in one commit.
const WRITES_MAX = 200
const AT_ONCE = 8
const POST = 'app.bsky.feed.post'

// Ids are times: they have to grow, and to be known before they are written.
const ALPHABET = '234567abcdefghijklmnopqrstuvwxyz'
let lastId = BigInt(Date.now() - 86_400_000) * 1000n
const nextId = () => {
  lastId += 1_000n
  let value = lastId << 10n
  let text = ''
  for (let place = 0; place < 13; place++) {
    text = ALPHABET[Number(value & 31n)] + text
    value >>= 5n
  }
  return text
}

let state = 7
const random = (below) => {
  state = (state * 1103515245 + 12345) & 0x7fffffff
  return (state >> 8) % below
}

const all = async (items, work) => {
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const place = next++
      await work(items[place], place)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

const begin = Date.now() - 3 * 3_600_000
let second = 0
const nextTime = () => new Date(begin + 1_000 * second++).toISOString()

const bytes = (text) => Buffer.byteLength(text)
// A facet on a part of a text: places are counted in bytes.
const facet = (text, part, feature) => {
  const byteStart = bytes(text.slice(0, text.indexOf(part)))
  return {
    index: { byteStart, byteEnd: byteStart + bytes(part) },
    features: [feature],
  }
}

// What is in the network, and what has to be written for it.
class Books {
  constructor(people) {
    this.people = people
    this.writes = people.map(() => [])
    this.posts = []
    this.follows = []
    this.likes = []
    this.reposts = []
  }

  write(author, collection, value, rkey) {
    rkey ??= nextId()
    const $type = 'com.atproto.repo.applyWrites#create'
    this.writes[author].push({ $type, collection, rkey, value: { $type: collection, ...value } })
    return `at://${this.people[author].did}/${collection}/${rkey}`
  }

  post(author, value, about = {}) {
    const record = { createdAt: nextTime(), langs: ['en'], ...value }
    const rkey = nextId()
    const uri = this.write(author, POST, record, rkey)
    const post = { uri, author: this.people[author].did, text: record.text, at: record.createdAt, ...about }
    this.posts.push(post)
    // What a post is has to be known before it is written: the servers tell it when it is.
    return { ...post, place: author, rkey, cid: undefined }
  }

  follow(from, to) {
    const createdAt = nextTime()
    const subject = this.people[to].did
    this.write(from, 'app.bsky.graph.follow', { subject, createdAt })
    this.follows.push([this.people[from].did, subject])
  }

  act(list, collection, from, post) {
    const createdAt = nextTime()
    const subject = { uri: post.uri, cid: post.cid }
    this.write(from, collection, { subject, createdAt })
    list.push([this.people[from].did, post.uri])
  }

  like(from, post) {
    this.act(this.likes, 'app.bsky.feed.like', from, post)
  }

  repost(from, post) {
    this.act(this.reposts, 'app.bsky.feed.repost', from, post)
  }

  // Sends what has been collected, one commit after the other for each account; learns the cids.
  async send() {
    const cids = new Map()
    await all(this.writes, async (writes, place) => {
      const { agent, did } = this.people[place]
      for (let start = 0; start < writes.length; start += WRITES_MAX) {
        const part = writes.slice(start, start + WRITES_MAX)
        const done = await agent.com.atproto.repo.applyWrites({ repo: did, writes: part })
        for (const result of done.data.results) cids.set(result.uri, result.cid)
      }
    })
    this.writes = this.people.map(() => [])
    return cids
  }
}

const join = async (pds, fetchAsOwner, accounts) => {
  const people = []
  await all([...Array(accounts).keys()], async (number) => {
    const agent = new AtpAgent({ service: pds, fetch: fetchAsOwner })
    const handle = `user${number}.test`
    await agent.createAccount({ handle, email: `user${number}@example.com`, password: PASSWORD })
    people[number] = { agent, did: agent.did, handle }
  })
  return people
}

const describe = (books) => {
  for (const [place] of books.people.entries()) {
    // Some have never said anything of themselves.
    if (place % 17 === 16) continue
    const profile = {
      displayName: `User ${place} Ünï`,
      description: `I am number ${place}. 🐦`,
      createdAt: nextTime(),
    }
    books.write(place, 'app.bsky.actor.profile', profile, 'self')
    books.people[place].name = profile.displayName
  }
}

const relate = (books) => {
  const count = books.people.length
  for (let from = 0; from < count; from++) {
    const whom = new Set(from === 0 ? [...Array(count).keys()].slice(1) : [0, (from + 1) % count])
    while (from !== 0 && whom.size < 9) whom.add(random(count))
    whom.delete(from)
    for (const to of whom) books.follow(from, to)
  }
}

// First posts: some plain, some with everything that a text can hold.
const speak = (books, many) => {
  const posts = []
  for (const [place, person] of books.people.entries()) {
    const next = books.people[(place + 1) % books.people.length]
    const count = many[place] ?? 5 + (place % 4)
    for (let number = 0; number < count; number++) {
      posts.push(books.post(place, { text: `post ${number} of ${person.handle}` }))
    }
    const tag = `${place % 2 === 0 ? 'birds' : 'Birds'}${place % 5}`
    const text = `Grüße 🐦 @${next.handle} #${tag} example.com`
    const facets = [
      facet(text, `@${next.handle}`, { $type: 'app.bsky.richtext.facet#mention', did: next.did }),
      facet(text, `#${tag}`, { $type: 'app.bsky.richtext.facet#tag', tag }),
      facet(text, 'example.com', { $type: 'app.bsky.richtext.facet#link', uri: 'https://example.com/' }),
    ]
    const about = { tags: [tag.toLowerCase(), 'hidden'], mentions: [next.did] }
    posts.push(books.post(place, { text, facets, tags: ['Hidden'], langs: ['de', 'en'] }, about))
  }
  const external = { uri: 'https://example.com/a', title: 'A page', description: 'about birds' }
  const embed = { $type: 'app.bsky.embed.external', external }
  posts.push(books.post(1, { text: 'a link', embed }))
  const labels = { $type: 'com.atproto.label.defs#selfLabels', values: [{ val: 'nudity' }] }
  posts.push(books.post(1, { text: 'a warning', labels }))
  // Nobody checks what time people say it is.
  for (const createdAt of ['2099-12-31T23:59:59.000Z', '1969-07-20T20:17:00.000Z']) {
    posts.push(books.post(7, { text: `written in ${createdAt.slice(0, 4)}`, createdAt }))
  }
  return posts
}

const withCids = (posts, cids) => {
  for (const post of posts) post.cid ??= cids.get(post.uri)
}

const named = (post) => ({ uri: post.uri, cid: post.cid })

// Answers, quotes, likes and reposts need the cids of what they are about.
const converse = async (books, posts) => {
  const own = posts.filter((post) => post.place === 0)
  const quoted = (post) => ({ $type: 'app.bsky.embed.record', record: named(post) })
  const later = []
  for (let place = 1; place < books.people.length; place++) {
    const root = own[place % 5]
    const reply = { root: named(root), parent: named(root) }
    const about = { parent: root.uri }
    later.push(books.post(place, { text: `answer of ${place}`, reply }, about))
    if (place % 3 === 0) {
      const embed = quoted(own[place % 4])
      books.post(place, { text: `quote by ${place}`, embed }, { quoted: own[place % 4].uri })
    }
  }
  const media = { $type: 'app.bsky.embed.external', external: { uri: 'https://example.com/b', title: 'b', description: '' } }
  const embed = { $type: 'app.bsky.embed.recordWithMedia', record: quoted(own[1]), media }
  books.post(2, { text: 'a quote and a page', embed }, { quoted: own[1].uri })
  // Some posts are liked by several, and most by nobody.
  const liked = posts.filter((_, number) => number % 12 === 0)
  for (let number = 0; number < 5 * books.people.length; number++) {
    books.like(random(books.people.length), liked[random(liked.length)])
  }
  for (let place = 1; place < books.people.length; place++) {
    books.repost(place, own[place % 3])
    const other = posts[random(posts.length)]
    if (other.place !== place && other !== own[place % 3]) books.repost(place, other)
  }
  withCids(later, await books.send())
  return later
}

// Two who do not stop.
const quarrel = async (books, answers) => {
  let parent = answers.find((post) => post.place === 5)
  const root = books.posts.find((post) => post.uri === parent.parent)
  const cid = { uri: root.uri, cid: parent.rootCid }
  for (let turn = 0; turn < 12; turn++) {
    const place = turn % 2 === 0 ? 6 : 5
    const reply = { root: cid, parent: named(parent) }
    const post = books.post(place, { text: `no! (${turn})`, reply }, { parent: parent.uri })
    withCids([post], await books.send())
    parent = post
  }
}

const drop = (books, uri) => {
  books.posts = books.posts.filter((post) => post.uri !== uri)
}

// Whatever happens to accounts.
const turnOver = async ({ network, pds, fetchAsOwner }, books, posts) => {
  const admin = { headers: { ...network.pds.adminAuthHeaders(), 'content-type': 'application/json' } }
  const ask = async (method, body) => {
    const answer = await fetchAsOwner(`${pds}/xrpc/${method}`, {
      ...admin,
      method: 'POST',
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${method}: ${await answer.text()}`)
  }
  const [renamed, broken, takenDown, deactivated, deleted] = [10, 11, 12, 13, 14].map((place) => books.people[place])
  const gone = posts.find((post) => post.place === 8)
  const orphan = { root: named(gone), parent: named(gone) }
  books.post(9, { text: 'an answer to nothing', reply: orphan }, { parent: gone.uri })
  await books.send()
  await books.people[8].agent.com.atproto.repo.deleteRecord({
    repo: books.people[8].did,
    collection: POST,
    rkey: gone.rkey,
  })
  drop(books, gone.uri)
  renamed.old = renamed.handle
  renamed.handle = 'renamed10.test'
  await renamed.agent.com.atproto.identity.updateHandle({ handle: renamed.handle })
  await network.pds.ctx.plcClient.updateHandle(broken.did, network.pds.ctx.plcRotationKey, 'ghost.test')
  const { sequencer } = network.pds.ctx
  await (sequencer.sequenceIdentity ? sequencer.sequenceIdentity(broken.did) : sequencer.sequenceIdentityEvt(broken.did))
  broken.handle = null
  const $type = 'com.atproto.admin.defs#repoRef'
  await ask('com.atproto.admin.updateSubjectStatus', {
    subject: { $type, did: takenDown.did },
    takedown: { applied: true, ref: 'test' },
  })
  takenDown.gone = 'suspended'
  await deactivated.agent.com.atproto.server.deactivateAccount({})
  deactivated.gone = 'deactivated'
  await ask('com.atproto.admin.deleteAccount', { did: deleted.did })
  deleted.gone = 'not found'
  return { deletedPost: gone.uri }
}

export const seed = async ({ network, pds, fetchAsOwner, owners, accounts }) => {
  const people = await join(pds, fetchAsOwner, accounts)
  for (const { agent, did } of people) owners.set(did, { agent, password: PASSWORD })
  const books = new Books(people)
  describe(books)
  relate(books)
  const posts = speak(books, { 0: 320, 3: 230 })
  withCids(posts, await books.send())
  const answers = await converse(books, posts)
  for (const answer of answers) answer.rootCid = posts.find((post) => post.uri === answer.parent).cid
  await quarrel(books, answers)
  const more = await turnOver({ network, pds, fetchAsOwner }, books, posts)
  return {
    people: people.map(({ did, handle, old, name, gone }) => ({ did, handle, old, name, gone })),
    posts: books.posts,
    follows: books.follows,
    likes: books.likes,
    reposts: books.reposts,
    ...more,
  }
}
