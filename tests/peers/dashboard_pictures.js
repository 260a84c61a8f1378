// Pictures of pages for documents: 1280 px wide, light.
//
// node dashboard_pictures.js MODULES CHROMIUM PROFILE BASE [PAGE FILE]...: writes each page as PNG, then prints `drawn N`.
'use strict'

const fs = require('fs')
const { launch } = require('./devtools.js')
const [, chromium, profile, base, ...pairs] = process.argv.slice(2)
const { open, close } = launch({ chromium, profile, isOwn: () => true, resolver: 'MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' })

const draw = async (page, file) => {
  const tab = await open([])
  await tab.show('light', 1280)
  await tab.load(base + page, { script: true })
  // Live figures come within two seconds, if the page has any.
  for (let n = 0; n < 100 && await tab.value("document.querySelector('.live[hidden]') !== null"); n++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  // The test's directory means nothing to readers.
  await tab.value("document.querySelector('.brand span').textContent = 'sqlite:/var/lib/firstbyte/lab/store.db'")
  const height = await tab.value('document.documentElement.scrollHeight')
  const clip = { x: 0, y: 0, width: 1280, height, scale: 1 }
  const { data } = await tab.call('Page.captureScreenshot', { format: 'png', clip, captureBeyondViewport: true })
  fs.writeFileSync(file, Buffer.from(data, 'base64'))
  await tab.close()
}

const main = async () => {
  for (let n = 0; n + 1 < pairs.length; n += 2) await draw(pairs[n], pairs[n + 1])
  console.log(`drawn ${pairs.length / 2}`)
  await close()
}
main().then(() => process.exit(0), (error) => {
  console.log(`failed: ${error.stack}`)
  process.exit(1)
})
