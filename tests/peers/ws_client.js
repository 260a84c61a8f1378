// A WebSocket client by other people: ws.
//
// node ws_client.js MODULES URL CONNECTIONS: keeps so many connections. For each line with a number on standard input it
// sends so many messages on each of them, every one when the one before has come back, and prints "echoed N lost M",
// N counting those that came back as they were and M the connections that have ended, since the beginning.
'use strict'

const path = require('path')
const readline = require('readline')
const [modules, url, connections] = process.argv.slice(2)
const { WebSocket } = require(path.join(modules, 'ws'))

let echoed = 0
let lost = 0
const open = () => new Promise((resolve, reject) => {
  const socket = new WebSocket(url, { rejectUnauthorized: false })
  socket.on('open', () => resolve(socket))
  socket.on('error', reject)
  socket.on('close', () => { lost += 1 })
})

// Small and large ones, text and bytes, compressed where the two agree on it.
const message = (n) => {
  const text = `message ${n} `.repeat(n % 100 === 0 ? 2000 : 1)
  return n % 2 ? text : Buffer.from(text)
}

const exchange = (socket, n) => new Promise((resolve, reject) => {
  const sent = message(n)
  socket.once('message', (data, isBinary) => {
    const same = isBinary === Buffer.isBuffer(sent) && data.equals(Buffer.from(sent))
    same ? resolve() : reject(new Error(`message ${n} came back as another`))
  })
  socket.send(sent)
})

const run = async (sockets, count) => {
  await Promise.all(sockets.map(async (socket) => {
    for (let n = 0; n < count; n += 1) {
      await exchange(socket, n)
      echoed += 1
    }
  }))
  console.log(`echoed ${echoed} lost ${lost}`)
}

const main = async () => {
  const sockets = await Promise.all(Array.from({ length: Number(connections) }, open))
  console.log('open')
  for await (const line of readline.createInterface({ input: process.stdin })) await run(sockets, Number(line))
  process.exit(0)
}

main().catch((error) => { console.log(error.message); process.exit(1) })
