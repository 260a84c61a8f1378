// A server of SPDY/3.1 by other people: spdy-transport over TLS, the protocol chosen by ALPN.
//
// node spdy_server.js MODULES CERTIFICATE KEY: listens on a free port of loopback and prints it. It answers
//   GET /N      N bytes of the pattern
//   POST /      the length of what was posted, and whether it was the pattern
//   GET /reset  nothing: the stream is reset
// It ends with its standard input.
'use strict'

const fs = require('fs')
const path = require('path')
const tls = require('tls')
const [modules, certificate, key] = process.argv.slice(2)
const transport = require(path.join(modules, 'spdy-transport'))

// A body whose bytes tell where they belong.
const pattern = (size) => Buffer.from(Array.from({ length: size }, (_, n) => 97 + (n % 23)))

const answer = (stream) => {
  if (stream.path === '/reset') {
    stream.abort()
    return
  }
  if (stream.method === 'GET') {
    const body = pattern(Number(stream.path.slice(1)))
    stream.respond(200, { 'content-length': String(body.length) })
    stream.end(body)
    return
  }
  const pieces = []
  stream.on('data', (piece) => pieces.push(piece))
  stream.on('end', () => {
    const body = Buffer.concat(pieces)
    stream.respond(200, {})
    stream.end(`${body.length} ${body.equals(pattern(body.length))}`)
  })
}

const options = { cert: fs.readFileSync(certificate), key: fs.readFileSync(key), ALPNProtocols: ['spdy/3.1'] }
const server = tls.createServer(options, (socket) => {
  const connection = transport.connection.create(socket, { protocol: 'spdy', isServer: true })
  connection.start(3.1)
  connection.on('stream', answer)
  connection.on('error', () => socket.destroy())
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0)).resume()
