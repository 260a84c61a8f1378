// A client of SPDY/3.1 by other people: spdy-transport over TLS, the protocol chosen by ALPN.
//
// node spdy.js MODULES PORT CASE: does what CASE says and prints a line for each outcome, which the test compares.
'use strict'

const path = require('path')
const tls = require('tls')
const [modules, port, name] = process.argv.slice(2)
const transport = require(path.join(modules, 'spdy-transport'))

// A body whose bytes tell where they belong.
const pattern = (size) => Buffer.from(Array.from({ length: size }, (_, n) => 97 + (n % 23)))

const connect = () => new Promise((resolve, reject) => {
  const options = { port, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['spdy/3.1'], rejectUnauthorized: false }
  const socket = tls.connect(options, () => {
    const connection = transport.connection.create(socket, { protocol: 'spdy', isServer: false })
    connection.start(3.1)
    connection.on('error', reject)
    resolve({ connection, alpn: socket.alpnProtocol, socket })
  })
  socket.on('error', reject)
})

// Sends a request; gives status, fields and body.
const request = (connection, method, target, options = {}) => new Promise((resolve, reject) => {
  const headers = options.headers || {}
  const uri = { method, host: 'localhost', path: target, headers, priority: options.priority }
  const stream = connection.request(uri, (error) => error && reject(error))
  const reply = { pieces: [] }
  stream.on('response', (status, fields) => Object.assign(reply, { status, fields }))
  stream.on('data', (piece) => {
    reply.pieces.push(piece)
    if (options.abortAfter && Buffer.concat(reply.pieces).length > options.abortAfter) {
      stream.abort(() => resolve({ aborted: true }))
    }
  })
  stream.on('end', () => resolve({ ...reply, body: Buffer.concat(reply.pieces) }))
  stream.on('error', (error) => options.abortAfter ? resolve({ aborted: true }) : reject(error))
  stream.end(options.body)
})

const cases = {
  async basic () {
    const { connection, alpn } = await connect()
    console.log(`alpn ${alpn}`)
    for (const target of ['/ok', '/protocol', '/missing']) {
      const reply = await request(connection, 'GET', target)
      console.log(target, reply.status, reply.body.length < 40 ? reply.body.toString() : '...')
    }
    const head = await request(connection, 'HEAD', '/large')
    console.log('HEAD', head.status, head.fields['content-length'], head.body.length)
    const cookies = await request(connection, 'GET', '/cookies', { headers: { cookie: 'x=1' } })
    console.log('cookies', JSON.stringify(cookies.fields['set-cookie']), cookies.body.toString())
  },

  async page () {
    const { connection, alpn } = await connect()
    const reply = await request(connection, 'GET', '/')
    console.log(`${alpn} ${reply.status} ${reply.fields['content-type']}`)
    process.stdout.write(reply.body)
  },

  async many () {
    const { connection } = await connect()
    const targets = Array.from({ length: 100 }, (_, n) => `/echo?${n}`)
    const replies = await Promise.all(targets.map((target, n) =>
      request(connection, 'GET', target, { priority: { weight: 1 + 32 * (n % 8) } })))
    const good = replies.filter((reply, n) => reply.status === 200 && reply.body.toString() === String(n))
    console.log('echoed', good.length)
    const large = await Promise.all(targets.slice(0, 20).map(() => request(connection, 'GET', '/large')))
    console.log('large', large.filter((reply) => reply.body.equals(pattern(300000))).length)
  },

  async bodies () {
    const { connection } = await connect()
    const size = 10 << 20
    const reply = await request(connection, 'GET', '/huge')
    console.log('received', reply.status, reply.body.length === size && reply.body.equals(pattern(size)))
    for (const headers of [{}, { 'content-length': size }]) {
      const sent = await request(connection, 'POST', '/ok.txt', { headers, body: pattern(size) })
      console.log('sent', sent.status)
    }
    const wrong = await request(connection, 'POST', '/ok.txt', { headers: { 'content-length': '5x' }, body: 'abc' })
    console.log('wrong', wrong.status)
    console.log('after', (await request(connection, 'GET', '/ok')).body.toString())
  },

  async resets () {
    const { connection } = await connect()
    const replies = await Promise.all(Array.from({ length: 20 }, (_, n) =>
      request(connection, 'GET', '/large', n % 2 ? { abortAfter: 20000 } : {})))
    console.log('aborted', replies.filter((reply) => reply.aborted).length)
    console.log('whole', replies.filter((reply) => !reply.aborted && reply.body.length === 300000).length)
    console.log('ping', await new Promise((resolve) => connection.ping(() => resolve('came back'))))
    console.log('after', (await request(connection, 'GET', '/ok')).body.toString())
  }
}

cases[name]().then(() => process.exit(0), (error) => {
  console.log(`failed: ${error.message}`)
  process.exit(1)
})
