// Chromium over the DevTools protocol, for the judges of pages: tabs that load, evaluate, press keys and note faults.
'use strict'

const { spawn } = require('child_process')

// Starts a browser. `isOwn` accepts the URLs that a page may request; `resolver` has rules for names of hosts; `flags` are more
// options of its command line.
exports.launch = ({ chromium, profile, isOwn, resolver, flags = [] }) => {
  // The protocol runs over a pair of pipes; messages end with a zero byte.
  const browser = spawn(chromium, [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--hide-scrollbars',
    `--host-resolver-rules=${resolver}`, '--remote-debugging-pipe', `--user-data-dir=${profile}`, ...flags
  ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true })
  const kill = () => { try { process.kill(-browser.pid, 'SIGKILL') } catch { /* it has ended */ } }
  process.on('exit', kill)
  const [into, from] = [browser.stdio[3], browser.stdio[4]]
  const answers = new Map()
  const listeners = new Set()
  let rest = Buffer.alloc(0)
  let last = 0
  from.on('data', (piece) => {
    rest = Buffer.concat([rest, piece])
    for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
      const message = JSON.parse(rest.subarray(0, end).toString())
      rest = rest.subarray(end + 1)
      const answer = answers.get(message.id)
      answers.delete(message.id)
      if (answer) answer(message)
      else for (const listener of listeners) listener(message)
    }
  })
  const send = (method, params = {}, sessionId) => new Promise((resolve, reject) => {
    const id = ++last
    answers.set(id, (message) => message.error ? reject(new Error(`${method}: ${message.error.message}`)) : resolve(message.result))
    into.write(JSON.stringify({ id, method, params, sessionId }) + '\0')
  })

  // A new tab; `faults` collects errors of the page, and requests to others.
  const open = async (faults) => {
    const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
    const tab = { call: (method, params) => send(method, params, sessionId), close: () => send('Target.closeTarget', { targetId }) }
    const listener = (message) => {
      if (message.sessionId !== sessionId) return
      if (message.method === 'Log.entryAdded') faults.push(`log: ${message.params.entry.text}`)
      if (message.method === 'Runtime.exceptionThrown') faults.push('an exception was thrown')
      const url = message.method === 'Network.requestWillBeSent' ? message.params.request.url : ''
      if (url && !isOwn(url)) faults.push(`it requests ${url}`)
      if (message.method === 'Page.loadEventFired') tab.loaded?.()
    }
    listeners.add(listener)
    for (const domain of ['Page', 'Network', 'Log', 'Runtime']) await tab.call(`${domain}.enable`)
    tab.show = async (scheme, width) => {
      await tab.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] })
      await tab.call('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false })
    }
    tab.load = async (url, { script }) => {
      await tab.call('Emulation.setScriptExecutionDisabled', { value: !script })
      const loaded = new Promise((resolve) => { tab.loaded = resolve })
      await tab.call('Page.navigate', { url })
      await loaded
    }
    tab.value = async (expression) => {
      const answer = await tab.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
      if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails).slice(0, 500))
      return answer.result.value
    }
    tab.picture = async () => (await tab.call('Page.captureScreenshot', { format: 'png' })).data
    tab.key = async (key, code, text) => {
      const event = { key, code: key, windowsVirtualKeyCode: code, text }
      await tab.call('Input.dispatchKeyEvent', { type: 'keyDown', ...event })
      await tab.call('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
    }
    return tab
  }
  return { open, close: () => send('Browser.close').catch(() => {}) }
}
