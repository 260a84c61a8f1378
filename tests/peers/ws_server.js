// A WebSocket server by other people: ws, as its documentation begins.
//
// node ws_server.js MODULES PORT: sends every message back as it came, text as text and bytes as bytes.
'use strict'

const path = require('path')
const [modules, port] = process.argv.slice(2)
const { WebSocketServer } = require(path.join(modules, 'ws'))

const server = new WebSocketServer({ host: '127.0.0.1', port: Number(port) })
server.on('connection', (socket, request) => {
  socket.on('error', console.error)
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  console.log(`from ${request.headers['x-forwarded-for']} for ${request.headers.host}`)
})
