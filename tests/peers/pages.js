// Judges pages and pictures of reports in Chromium: axe-core in light and dark, wide and as narrow as a telephone, without
// script, by keyboard; a picture's text within its edges. Judges HAR files: the validator of har-sdk, and whether the viewer
// PerfCascade draws a row for each entry of each page and opens it.
//
// node pages.js MODULES CHROMIUM PROFILE FILE...: prints a line for each fault, then `judged N`; a file is .html, .svg or .har.
'use strict'

const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')
const { launch } = require('./devtools.js')
const [modules, chromium, profile, ...files] = process.argv.slice(2)
const axe = fs.readFileSync(path.join(modules, 'axe-core', 'axe.min.js'), 'utf8')

const isOwn = (url) => url.startsWith('file:') || url.startsWith('data:')
const { open, close } = launch({ chromium, profile, isOwn, resolver: 'MAP * ~NOTFOUND' })
const load = (tab, file, options) => tab.load(pathToFileURL(file).href, options)

// Whatever a server could have smuggled in.
const foreign = `(() => {
  const all = [...document.querySelectorAll('*')]
  const tags = all.filter((one) => /^(script|iframe|object|embed|form|input|base|audio|video|foreignobject)$/i.test(one.localName))
  const events = all.filter((one) => [...one.attributes].some(({ name }) => name.startsWith('on')))
  const images = [...document.querySelectorAll('img')].filter((one) => !one.src.startsWith('data:image/jpeg;base64,'))
  const links = [...document.querySelectorAll('[href]')].filter((one) => one.getAttribute('href') !== 'data:,')
  return [...tags, ...events, ...images, ...links].map((one) => one.outerHTML.slice(0, 200))
})()`

// One tab for all colours and widths: axe-core takes as long to load as to judge a small page.
const judgePage = async (file, fault) => {
  const said = []
  const tab = await open(said)
  await tab.show('light', 1280)
  await load(tab, file, { script: true })
  const shown = await tab.picture()
  for (const found of await tab.value(foreign)) fault(`foreign: ${found}`)
  await tab.value(axe)
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 360]) {
      await tab.show(scheme, width)
      for (const state of ['closed', 'open']) {
        const where = (what) => fault(`${scheme}, ${width} px, ${state}: ${what}`)
        await tab.value(`document.querySelectorAll('details').forEach((one) => { one.open = ${state === 'open'} })`)
        const wider = await tab.value('document.scrollingElement.scrollWidth - innerWidth')
        if (wider > 0) where(`the page is ${wider} px wider than the screen`)
        const found = await tab.value(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
          violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => id + ': ' + node.html.slice(0, 200) + ' ' + node.failureSummary)))`)
        for (const violation of found) where(violation)
      }
    }
  }
  await tab.show('light', 1280)
  await load(tab, file, { script: false })
  if (await tab.picture() !== shown) fault('without script it looks different')
  if (await tab.value("document.querySelector('details') !== null")) {
    const focus = 'document.activeElement.localName'
    for (let n = 0; n < 100 && await tab.value(focus) !== 'summary'; n++) await tab.key('Tab', 9)
    // Some are open at first.
    const state = "String(document.activeElement.closest('details')?.open)"
    const before = await tab.value(state)
    await tab.key('Enter', 13, '\r')
    const after = await tab.value(state)
    if (after === before || after === 'undefined') fault('a resource does not open by keyboard')
  }
  for (const what of said) fault(what)
  await tab.close()
}

const judgePicture = async (file, fault) => {
  const grounds = []
  const said = []
  const tab = await open(said)
  for (const scheme of ['light', 'dark']) {
    await tab.show(scheme, 1280)
    await load(tab, file, { script: true })
    if (await tab.value('document.documentElement.localName') !== 'svg') fault('it is no SVG')
    if (await tab.value("document.querySelector('parsererror') !== null")) fault('it is not well-formed')
    for (const found of await tab.value(foreign)) fault(`foreign: ${found}`)
    const outside = await tab.value(`(() => {
      const view = document.documentElement.viewBox.baseVal
      return [...document.querySelectorAll('text, rect, line')].filter((one) => {
        const box = one.getBBox()
        return box.x < -0.5 || box.y < -0.5 || box.x + box.width > view.width + 0.5 || box.y + box.height > view.height + 0.5
      }).map((one) => one.outerHTML.slice(0, 200))
    })()`)
    for (const found of outside) fault(`outside of the picture: ${found}`)
    grounds.push(await tab.value("getComputedStyle(document.querySelector('.page')).fill"))
  }
  for (const what of said) fault(what)
  await tab.close()
  if (grounds[0] === grounds[1]) fault(`light and dark have one ground: ${grounds[0]}`)
}

const judgeArchive = async (file, fault) => {
  const har = JSON.parse(fs.readFileSync(file, 'utf8'))
  const { HarValidator } = require(path.join(modules, '@har-sdk', 'validator'))
  for (const { instancePath, message } of await new HarValidator().verify(har)) fault(`${instancePath} ${message}`)
  const said = []
  const tab = await open(said)
  const viewer = path.join(modules, 'perf-cascade', 'dist', 'perf-cascade.min.js')
  await tab.value(`${fs.readFileSync(viewer, 'utf8')}; const har = ${JSON.stringify(har)}`)
  // A place of its own: the viewer puts an element for measuring text into the body and takes it out half a second later.
  await tab.value("const place = document.body.appendChild(document.createElement('div')); undefined")
  for (const [selectedPage, { id }] of har.log.pages.entries()) {
    const wanted = har.log.entries.filter(({ pageref }) => pageref === id).length
    const [rows, opened] = await tab.value(`(() => {
      place.replaceChildren(perfCascade.fromHar(har, { selectedPage: ${selectedPage} }))
      const rows = document.querySelectorAll('.rows-holder > a')
      for (const row of rows) row.dispatchEvent(new MouseEvent('click', { cancelable: true }))
      return [rows.length, document.querySelectorAll('.info-overlay-holder').length]
    })()`)
    if (rows !== wanted || opened !== wanted) fault(`${id} has ${wanted} entries, of which ${rows} are drawn and ${opened} open`)
  }
  for (const what of said) fault(what)
  await tab.close()
}

const judges = { '.html': judgePage, '.svg': judgePicture, '.har': judgeArchive }
const main = async () => {
  for (const file of files) {
    const judge = judges[path.extname(file)]
    await judge(file, (what) => console.log(`${path.basename(file)}: ${what}`))
  }
  console.log(`judged ${files.length}`)
  await close()
}
main().then(() => process.exit(0), (error) => {
  console.log(`failed: ${error.stack}`)
  process.exit(1)
})
