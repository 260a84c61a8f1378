// Servers over TLS that pick their certificate by SNI and want a client certificate.
//
// node tls_server.js KIND PORT DIR: DIR has ca.pem, and NAME.pem with NAME.key for each name. KIND is `https`, or `uwsgi`, which
// reads a packet and responds in HTTP. A response says which name was asked for, who the client is, whether its session was resumed.
'use strict'

const fs = require('fs')
const https = require('https')
const path = require('path')
const tls = require('tls')

const [kind, port, dir] = process.argv.slice(2)
const read = (name) => fs.readFileSync(path.join(dir, name))
const pair = (name) => ({ cert: read(`${name}.pem`), key: read(`${name}.key`) })
const options = {
  ...pair('default'),
  ca: read('ca.pem'),
  requestCert: true,
  rejectUnauthorized: true,
  SNICallback: (name, done) => {
    const known = fs.existsSync(path.join(dir, `${name}.pem`))
    done(null, tls.createSecureContext({ ...pair(known ? name : 'default'), ca: read('ca.pem') }))
  },
}
const about = (socket) =>
  `${socket.servername || '-'} ${socket.getPeerCertificate().subject.CN} ${socket.isSessionReused() ? 'resumed' : 'new'}\n`

if (kind === 'https') {
  https.createServer(options, (request, response) => response.end(about(request.socket))).listen(Number(port), '127.0.0.1')
} else {
  const server = tls.createServer(options, (socket) => {
    let input = Buffer.alloc(0)
    socket.on('error', console.error)
    socket.on('data', (data) => {
      input = Buffer.concat([input, data])
      if (input.length < 4 || input.length < 4 + input.readUInt16LE(1)) return
      socket.end(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n${about(socket)}`)
    })
  })
  server.listen(Number(port), '127.0.0.1')
}
