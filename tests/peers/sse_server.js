// An application with server-sent events, as Node's documentation of `http` and the HTML standard have it.
//
// node sse_server.js PORT: GET /events is a stream of events, from after Last-Event-ID on; POST /publish sends its body to
// all streams as the next event and answers with how many there were.
'use strict'

const http = require('http')
const [port] = process.argv.slice(2)
const streams = new Set()
const history = []

const event = ({ id, text }) => `id: ${id}\ndata: ${text}\n\n`

const subscribe = (request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  response.flushHeaders()
  const last = Number(request.headers['last-event-id'] || history.length)
  for (const missed of history.slice(last)) response.write(event(missed))
  streams.add(response)
  request.on('close', () => streams.delete(response))
}

const publish = (request, response) => {
  const pieces = []
  request.on('data', (piece) => pieces.push(piece))
  request.on('end', () => {
    const next = { id: history.length + 1, text: Buffer.concat(pieces).toString() }
    history.push(next)
    for (const stream of streams) stream.write(event(next))
    response.end(String(streams.size))
  })
}

http.createServer((request, response) => {
  if (request.url === '/events') return subscribe(request, response)
  if (request.url === '/publish') return publish(request, response)
  response.writeHead(404).end()
}).listen(Number(port), '127.0.0.1')
