// Judges pages of the dashboard in Chromium: axe-core in light and dark, wide and as narrow as a telephone; requests to others;
// the policy. An overview is used, too: by keyboard, without script, with zoom, live figures, on paper.
//
// node dashboard.js MODULES CHROMIUM PROFILE BASE PAGE...: prints a line for each fault, then `judged N`. The page `use` is the
// tour of an overview; `use=N` wants N open connections; `tour` is that of an experiment.
'use strict'

const fs = require('fs')
const path = require('path')
const { launch } = require('./devtools.js')
const [modules, chromium, profile, base, ...pages] = process.argv.slice(2)
const axe = fs.readFileSync(path.join(modules, 'axe-core', 'axe.min.js'), 'utf8')
const isOwn = (url) => url.startsWith(base)
const { open, close } = launch({ chromium, profile, isOwn, resolver: 'MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' })

// Waits for a condition of the page.
const until = async (tab, condition, what) => {
  for (let n = 0; n < 600; n++) {
    // A page that is left answers nothing.
    if (await tab.value(condition).catch(() => false)) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`not within 30 s: ${what}`)
}
const isShown = (selector) => `(() => { const one = document.querySelector('${selector}')
  const box = one?.getBoundingClientRect()
  return Boolean(box) && box.width > 20 && box.height > 8 && getComputedStyle(one).visibility === 'visible' })()`
const active = 'document.activeElement'

// Errors that a page is about are in its log; a page of an error has one line of its own.
const ofStatus = (fault) => /^log: Failed to load resource: the server responded with a status of (4|5)0\d/.test(fault)

const judgePage = async (page, fault) => {
  const said = []
  const tab = await open(said)
  await tab.show('light', 1280)
  await tab.load(base + page, { script: true })
  await tab.value(axe)
  const grounds = new Set()
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 360]) {
      await tab.show(scheme, width)
      await tab.value("document.querySelectorAll('details').forEach((one) => { one.open = true })")
      const where = (what) => fault(`${scheme}, ${width} px: ${what}`)
      const wider = await tab.value('document.scrollingElement.scrollWidth - innerWidth')
      if (wider > 0) where(`the page is ${wider} px wider than the screen`)
      const found = await tab.value(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => id + ': ' + node.html.slice(0, 200) + ' ' + node.failureSummary)))`)
      for (const violation of found) where(violation)
      const outside = await tab.value(`[...document.querySelectorAll('.chart text')].filter((one) => {
        const [own, page] = [one.getBoundingClientRect(), document.querySelector('main').getBoundingClientRect()]
        return own.width > 0 && one.closest('.still') === null && (own.left < page.left - 1 || own.right > page.right + 1)
      }).map((one) => one.outerHTML.slice(0, 150))`)
      for (const text of outside) where(`outside of the page: ${text}`)
    }
    grounds.add(await tab.value('getComputedStyle(document.body).backgroundColor'))
  }
  if (grounds.size !== 2) fault('light and dark have one ground')
  // A chart of a single time has nothing to zoom.
  const plots = await tab.value("[[...document.querySelectorAll('[data-chart]')].filter((one) => JSON.parse(one.dataset.chart).times.length > 1).length, document.querySelectorAll('.uplot canvas').length].join()")
  if (plots.split(',')[0] !== plots.split(',')[1]) fault(`charts and drawn charts: ${plots}`)
  const policy = await tab.value("fetch(location.href).then((answer) => answer.headers.get('content-security-policy'))")
  if (!policy.startsWith("default-src 'none'") || policy.includes('unsafe')) fault(`policy: ${policy}`)
  if (await tab.value('document.getAnimations().length') > 0) fault('something moves')
  for (const what of said.filter((what) => !ofStatus(what))) fault(what)
  await tab.close()
}

// A script within the page must not run. The refusal is in the log, so this tab has a list of its own.
const judgePolicy = async (fault) => {
  const tab = await open([])
  await tab.load(`${base}times`, { script: true })
  const ran = await tab.value(`(() => {
    const script = document.createElement('script')
    script.textContent = 'window.ran = true'
    const div = document.createElement('div')
    div.innerHTML = '<img src="https://example.invalid/x" onerror="window.ran = true"><b style="position: fixed">x</b>'
    document.body.append(script, div)
    return window.ran === true || getComputedStyle(div.querySelector('b')).position === 'fixed'
  })()`)
  if (ran) fault('scripts or styles within the page have an effect')
  await tab.close()
}

const judgeKeyboard = async (fault) => {
  const said = []
  const tab = await open(said)
  await tab.show('light', 1280)
  await tab.load(`${base}overview?period=1h`, { script: true })
  await tab.key('Tab', 9)
  if (!await tab.value(`${active}.matches('.skip') && ${active}.getBoundingClientRect().left >= 0`)) fault('the first stop is no visible link to the content')
  await tab.key('Enter', 13, '\r')
  await until(tab, `${active}.matches('main')`, 'the content has the focus')
  const stops = new Set()
  let moved = false
  for (let n = 0; n < 80; n++) {
    await tab.key('Tab', 9)
    const stop = await tab.value(`${active} === document.body ? '' : ${active}.outerHTML.slice(0, 120)`)
    if (stop === '') break
    if (await tab.value(`getComputedStyle(${active}).outlineStyle === 'none'`)) fault(`no visible focus: ${stop}`)
    stops.add(await tab.value(`${active}.name || ${active}.localName`))
    if (!moved && await tab.value(`${active}.type === 'range'`)) {
      moved = true
      const before = await tab.value("document.querySelector('output').textContent")
      await tab.key('ArrowLeft', 37)
      const after = await tab.value("document.querySelector('output').textContent")
      if (before === after) fault('the slider moves without a new text')
      if (!await tab.value(`${active}.getAttribute('aria-valuetext') === document.querySelector('output').textContent`)) fault('the slider has no text of its value')
    }
  }
  for (const stop of ['period', 'from', 'to', 'protocol', 'server', 'metric', 'shift', 'summary', 'a', 'button']) {
    if (!stops.has(stop)) fault(`not reached by keyboard: ${stop}`)
  }
  await tab.value("document.querySelector('[name=shift]').focus()")
  await tab.key('Enter', 13, '\r')
  await until(tab, "location.search.includes('shift=-1') && document.readyState === 'complete'", 'Enter moves the period')
  if (!await tab.value("location.search.includes('period=1h')")) fault('the period is lost')
  for (const what of said) fault(what)
  await tab.close()
}

const judgeWithoutScript = async (fault) => {
  const said = []
  const tab = await open(said)
  await tab.show('light', 1280)
  await tab.load(`${base}overview`, { script: false })
  for (const selector of ['.plot svg', '.plot .legend', '.map', 'main > .tiles dd', 'form.controls button']) {
    if (!await tab.value(isShown(selector))) fault(`without script: no ${selector}`)
  }
  if (await tab.value(isShown('.live'))) fault('without script: empty live figures')
  await tab.value("document.querySelector('summary').focus()")
  await tab.key('Enter', 13, '\r')
  if (!await tab.value(isShown('details[open] table'))) fault('without script: no table')
  const loaded = new Promise((resolve) => { tab.loaded = resolve })
  await tab.value("document.querySelector('[name=protocol]').value = 'HTTP/1.1'; document.querySelector('form.controls button').focus()")
  await tab.key('Enter', 13, '\r')
  await loaded
  if (!await tab.value("location.search.includes('protocol=HTTP%2F1.1') && document.querySelector('[name=protocol]').value === 'HTTP/1.1'")) fault('without script: the form does nothing')
  const again = new Promise((resolve) => { tab.loaded = resolve })
  await tab.value("document.querySelector('a[rel=prev]').focus()")
  await tab.key('Enter', 13, '\r')
  await again
  if (!await tab.value("location.search.includes('shift=-1') && location.search.includes('protocol=')")) fault('without script: no previous period')
  for (const what of said) fault(what)
  await tab.close()
}

const judgeScript = async (fault, wanted) => {
  const said = []
  const tab = await open(said)
  await tab.show('light', 1280)
  await tab.load(`${base}overview?period=6h`, { script: true })
  await until(tab, isShown('.live'), 'live figures')
  const count = await tab.value("document.querySelector('[data-figure=open]').textContent")
  if (wanted ? count !== wanted : !/^[1-9]\d*$/.test(count)) fault(`${count} open connections`)
  const [x, y, width] = await tab.value("(() => { const box = document.querySelector('.u-over').getBoundingClientRect(); return [box.x, box.y + box.height / 2, box.width] })()")
  const mouse = (type, share) => tab.call('Input.dispatchMouseEvent', { type, x: x + width * share, y, button: 'left', buttons: 1, clickCount: 1 })
  await mouse('mousePressed', 0.3)
  await mouse('mouseMoved', 0.4)
  await mouse('mouseMoved', 0.6)
  await mouse('mouseReleased', 0.6)
  await until(tab, isShown('.zoomed a'), 'a selection zooms')
  const target = await tab.value("document.querySelector('.zoomed a').getAttribute('href')")
  if (!/from=.*&to=/.test(target)) fault(`the selection has no period: ${target}`)
  await tab.value("document.querySelector('.zoomed button').click()")
  await until(tab, `!${isShown('.zoomed')}`, 'the whole period comes back')
  await tab.call('Emulation.setEmulatedMedia', { media: 'print' })
  if (!await tab.value(isShown('.plot svg')) || await tab.value(isShown('nav')) || await tab.value(isShown('.uplot'))) fault('on paper: charts are missing, or controls are there')
  await tab.call('Emulation.setEmulatedMedia', { media: '' })
  // A choice loads the page at once.
  const loaded = new Promise((resolve) => { tab.loaded = resolve })
  await tab.value("(() => { const one = document.querySelector('[name=period]'); one.value = '7d'; one.dispatchEvent(new Event('change', { bubbles: true })) })()")
  await loaded
  if (!await tab.value("location.search === '?period=7d&metric=min_rtt&percentile=50'")) fault(`the address is ${await tab.value('location.search')}`)
  for (const what of said) fault(what)
  await tab.close()
}

// An experiment by keyboard and without script: verdict, bands, tables, the form.
const judgeExperiment = async (fault) => {
  const said = []
  const tab = await open(said)
  await tab.show('light', 1280)
  await tab.load(`${base}experiments?experiment=spdy`, { script: false })
  for (const selector of ['.verdict strong', '.plot svg .band', '.panel details[open] table', 'form.controls button']) {
    if (!await tab.value(isShown(selector))) fault(`without script: no ${selector}`)
  }
  const stops = new Set()
  for (let n = 0; n < 60; n++) {
    await tab.key('Tab', 9)
    if (await tab.value(`${active} === document.body`)) break
    if (await tab.value(`getComputedStyle(${active}).outlineStyle === 'none'`)) fault(`no visible focus: ${await tab.value(`${active}.outerHTML.slice(0, 120)`)}`)
    stops.add(await tab.value(`${active}.name || ${active}.localName`))
  }
  for (const stop of ['visit', 'aa', 'button', 'summary', 'a', 'div']) {
    if (!stops.has(stop)) fault(`not reached by keyboard: ${stop}`)
  }
  const loaded = new Promise((resolve) => { tab.loaded = resolve })
  await tab.value("document.querySelector('[name=visit]').value = 'first_byte'; document.querySelector('form.controls button').focus()")
  await tab.key('Enter', 13, '\r')
  await loaded
  if (!await tab.value("location.search.includes('experiment=spdy') && location.search.includes('visit=first_byte') && document.querySelector('[name=visit]').value === 'first_byte'")) fault('without script: the form does nothing')
  for (const what of said) fault(what)
  await tab.close()
}

const main = async () => {
  for (const page of pages) {
    const fault = (what) => console.log(`${page}: ${what}`)
    const [name, wanted] = page.split('=')
    if (name === 'use') {
      for (const judge of [judgeKeyboard, judgeWithoutScript, judgeScript, judgePolicy]) await judge(fault, wanted)
    } else if (name === 'tour') await judgeExperiment(fault)
    else await judgePage(page, fault)
  }
  console.log(`judged ${pages.length}`)
  await close()
}
main().then(() => process.exit(0), (error) => {
  console.log(`failed: ${error.stack}`)
  process.exit(1)
})
