// Runs the suite http-tests/cache-tests and prints a line for each test with a verdict: id, kind, outcome, note, with tabs
// between them. Tests of browsers and checks without a verdict are left out.
//
// node outcomes.mjs CHECKOUT URL, where CHECKOUT has the suite and URL is that of the cache in front of the suite's server.
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [checkout, url] = process.argv.slice(2)
const load = name => import(pathToFileURL(path.join(checkout, name)))
const { default: suites } = await load('tests/index.mjs')
const { runTests, getResults } = await load('test-engine/client/runner.mjs')
const { determineTestResult, resultTypes } = await load('test-engine/lib/results.mjs')

// Notes of the suite must not be among the lines.
console.log = console.error
await runTests(suites, false, url)
const results = getResults()
for (const test of suites.flatMap(suite => suite.tests)) {
  const kind = test.kind ?? 'required'
  if (test.browser_only || kind === 'check') continue
  const found = determineTestResult(suites, test.id, results)
  const outcome = Object.keys(resultTypes).find(name => resultTypes[name] === found)
  const note = Array.isArray(results[test.id]) ? results[test.id][1] : ''
  process.stdout.write([test.id, kind, outcome, note].join('\t') + '\n')
}
