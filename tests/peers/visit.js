// Visits pages in Chromium (DevTools) or Firefox (WebDriver BiDi), step by step, for the tests of beacons.
//
// node visit.js MODULES PROGRAM PROFILE STEP...: prints a line of JSON for each step, then `done`. Steps:
//   load=URL      navigates and waits for the event `load`; prints the milliseconds, as the next three do
//   read=URL      navigates and waits for the event `DOMContentLoaded`
//   back=PATH     goes back in the history, and waits until the page with this path is loaded or restored
//   value=CODE    evaluates an expression, and waits if it is a promise; prints its value
//   click=X,Y     presses and releases the mouse button
'use strict'

const { spawn } = require('child_process')
const fs = require('fs')
const path = require('path')
const { launch } = require('./devtools.js')
const [modules, program, profile, ...steps] = process.argv.slice(2)

const chromium = async () => {
  const flags = ['--ignore-certificate-errors']
  const resolver = 'MAP * ~NOTFOUND,EXCLUDE *.localhost,EXCLUDE localhost,EXCLUDE 127.0.0.1'
  const { open, close } = launch({ chromium: program, profile, isOwn: () => true, resolver, flags })
  const tab = await open([])
  const mouse = (type, x, y) => tab.call('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 })
  return {
    load: (url) => tab.load(url, { script: true }),
    read: async (url) => {
      await tab.call('Page.navigate', { url })
      await tab.value(`new Promise((resolve) => document.readyState === 'loading'
        ? addEventListener('DOMContentLoaded', () => resolve()) : resolve())`)
    },
    back: () => tab.value('void history.back()'),
    value: tab.value,
    click: async (x, y) => {
      await mouse('mousePressed', x, y)
      await mouse('mouseReleased', x, y)
    },
    close
  }
}

// Nothing but pages of the test is requested.
const prefs = {
  'app.normandy.enabled': false,
  'app.update.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'browser.tabs.remote.useHTTP': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'network.dns.disablePrefetch': true,
  'network.trr.mode': 5,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.enabled': false
}

const firefox = async () => {
  const WebSocket = require(path.join(modules, 'ws'))
  const lines = Object.entries(prefs).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`)
  fs.mkdirSync(profile, { recursive: true })
  fs.writeFileSync(path.join(profile, 'user.js'), lines.join(''))
  const browser = spawn(program, ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'],
    { stdio: ['ignore', 'ignore', 'pipe'], detached: true, env: { ...process.env, HOME: profile, MOZ_CRASHREPORTER_DISABLE: '1' } })
  const kill = () => { try { process.kill(-browser.pid, 'SIGKILL') } catch { /* it has ended */ } }
  process.on('exit', kill)
  const address = await new Promise((resolve, reject) => {
    let text = ''
    browser.stderr.on('data', (piece) => {
      text += piece
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text)
      if (found) resolve(found[1])
    })
    browser.on('exit', () => reject(new Error(`it ended: ${text}`)))
  })
  const socket = new WebSocket(`${address}/session`)
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject))
  const answers = new Map()
  let last = 0
  socket.on('message', (text) => {
    const message = JSON.parse(text)
    answers.get(message.id)?.(message)
    answers.delete(message.id)
  })
  const call = (method, params) => new Promise((resolve, reject) => {
    const id = ++last
    answers.set(id, (message) => message.type === 'error' ? reject(new Error(`${method}: ${message.message}`)) : resolve(message.result))
    socket.send(JSON.stringify({ id, method, params }))
  })
  await call('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } })
  const { context } = await call('browsingContext.create', { type: 'tab' })
  const value = async (code) => {
    const expression = `Promise.resolve(${code}).then((value) => JSON.stringify(value ?? null))`
    const { result, exceptionDetails } = await call('script.evaluate', { expression, target: { context }, awaitPromise: true })
    if (exceptionDetails) throw new Error(exceptionDetails.text)
    return JSON.parse(result.value)
  }
  return {
    load: (url) => call('browsingContext.navigate', { context, url, wait: 'complete' }),
    read: (url) => call('browsingContext.navigate', { context, url, wait: 'interactive' }),
    back: () => call('browsingContext.traverseHistory', { context, delta: -1 }),
    value,
    click: (x, y) => call('input.performActions', {
      context,
      actions: [{
        type: 'pointer',
        id: 'mouse',
        actions: [{ type: 'pointerMove', x, y }, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }]
      }]
    }),
    close: () => call('browser.close', {}).catch(() => {})
  }
}

// A page may be replaced while it is asked.
const back = async (browser, pathname) => {
  await browser.back()
  const isThere = () => browser.value(`location.pathname === ${JSON.stringify(pathname)} && document.readyState === 'complete'`)
  while (!await isThere().catch(() => false)) await new Promise((resolve) => setTimeout(resolve, 20))
}

const main = async () => {
  const browser = await (/firefox/.test(path.basename(program)) ? firefox() : chromium())
  for (const step of steps) {
    const [verb, rest] = [step.slice(0, step.indexOf('=')), step.slice(step.indexOf('=') + 1)]
    const began = performance.now()
    let shown
    if (verb === 'load') await browser.load(rest)
    else if (verb === 'read') await browser.read(rest)
    else if (verb === 'back') await back(browser, rest)
    else if (verb === 'value') shown = await browser.value(rest)
    else if (verb === 'click') await browser.click(...rest.split(',').map(Number))
    else throw new Error(`unknown step ${step}`)
    console.log(JSON.stringify(shown ?? performance.now() - began))
  }
  await browser.close()
  console.log('done')
}
main().then(() => process.exit(0), (error) => {
  console.log(`failed: ${error.stack}`)
  process.exit(1)
})
