// The dashboard's script: the form submits itself, charts can be zoomed, live figures arrive. Pages work without it.
'use strict'
;(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  const pad = (number) => String(number).padStart(2, '0')
  const readable = (s) => {
    const at = new Date(s * 1000)
    return `${at.getUTCFullYear()}-${pad(at.getUTCMonth() + 1)}-${pad(at.getUTCDate())} ${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}`
  }
  const bytes = (value) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
    let n = 0
    for (; value >= 1024 && n < units.length - 1; n++) value /= 1024
    return `${n === 0 ? Math.round(value) : value.toPrecision(3)} ${units[n]}`
  }
  const number = (value) => value >= 10000 ? value.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 1 })
    : String(Number(value.toPrecision(3)))

  // The form.
  const form = document.querySelector('form.controls')
  const hasPeriod = Boolean(form?.elements.shift)
  if (form && !hasPeriod) {
    form.addEventListener('change', () => form.requestSubmit())
    form.addEventListener('submit', () => { for (const one of form.elements) if (one.value === '') one.disabled = true })
    window.addEventListener('pageshow', () => { for (const one of form.elements) one.disabled = false })
  }
  if (hasPeriod) {
    const period = form.elements.period
    const shift = form.elements.shift
    const output = form.querySelector('output')
    form.addEventListener('input', ({ target }) => {
      if (target.name === 'from' || target.name === 'to') {
        period.value = 'exact'
        shift.disabled = true
      }
      if (target === shift) {
        const from = Number(shift.dataset.from) + Number(shift.dataset.length) * Number(shift.value)
        output.textContent = `${readable(from)} to ${readable(from + Number(shift.dataset.length))}`
        shift.setAttribute('aria-valuetext', output.textContent)
      }
    })
    shift.setAttribute('aria-valuetext', output.textContent)
    // By pointer the slider submits when it is let go; by keyboard, Enter submits, so that it can move by several steps.
    let byPointer = false
    shift.addEventListener('pointerdown', () => { byPointer = true })
    form.addEventListener('change', ({ target }) => {
      if (target === period) shift.disabled = true
      if (target.localName === 'select' && target.value !== 'exact') form.requestSubmit()
      if (target === shift && byPointer) form.requestSubmit()
      byPointer = false
    })
    shift.addEventListener('keydown', ({ key }) => { if (key === 'Enter') form.requestSubmit() })
    // Values that equal the default would make addresses long.
    form.addEventListener('submit', () => {
      if (period.value !== 'exact') for (const name of ['from', 'to']) form.elements[name].disabled = true
      for (const one of form.elements) if (one.name && (one.value === '' || (one === shift && one.value === '0'))) one.disabled = true
    })
    // A page from the history has its form as it was sent.
    window.addEventListener('pageshow', () => { for (const one of form.elements) one.disabled = false })
  }

  // An analysis in progress.
  const again = document.querySelector('[data-reload]')
  if (again) setTimeout(() => location.reload(), Number(again.dataset.reload) * 1000)

  // Charts.
  const dashes = [[], [6, 3], [2, 2], [8, 2, 2, 2], [12, 3], [1, 3]]
  const binary = Array.from({ length: 50 }, (_, n) => 2 ** n)
  const plots = []
  const draw = (element) => {
    const data = JSON.parse(element.dataset.chart)
    if (data.times.length < 2) return
    const format = data.scale === 'bytes' ? bytes : number
    const show = (plot, value) => value === null || value === undefined ? '–' : `${format(value)} ${data.unit}`
    const axis = { stroke: () => colour('--soft'), grid: { stroke: () => colour('--line'), width: 1 }, ticks: { stroke: () => colour('--line'), width: 1 }, font: '12px system-ui, sans-serif' }
    const zoomed = document.createElement('p')
    zoomed.className = 'zoomed'
    zoomed.hidden = true
    const plot = new uPlot({
      width: element.clientWidth,
      height: 210,
      tzDate: (s) => uPlot.tzDate(new Date(s * 1000), 'UTC'),
      scales: { x: { range: (plot, from, to) => [from, to] }, y: { range: (plot, from, to) => [0, to > 0 ? to * 1.05 : 1] } },
      axes: [{ ...axis, space: 70, values: [[86400, '{MM}-{DD}', '\n{YYYY}', null, null, null, null, null, 1], [3600, '{HH}:{mm}', '\n{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1], [1, '{HH}:{mm}', '\n{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1]] },
        { ...axis, size: 64, values: (plot, all) => all.map(format), ...(data.scale === 'bytes' ? { incrs: binary } : {}) }],
      series: [{ value: (plot, s) => s === null ? '–' : readable(s) + ' UTC' },
        ...data.series.map(({ name }, n) => ({ label: name, stroke: () => colour(`--s${n}`), dash: dashes[n], width: 1.5, points: { show: false }, value: show }))],
      cursor: { drag: { x: true, y: false } },
      hooks: {
        setScale: [(plot, key) => {
          if (key !== 'x') return
          const { min, max } = plot.scales.x
          const whole = min <= data.times[0] && max >= data.times[data.times.length - 1]
          zoomed.hidden = whole
          if (whole) return
          const query = new URLSearchParams(location.search)
          for (const name of ['period', 'shift']) query.delete(name)
          const iso = (s) => new Date(Math.round(s / 60) * 60000).toISOString().slice(0, 16) + 'Z'
          query.set('from', iso(min))
          query.set('to', iso(Math.max(max, min + 60)))
          // An experiment has its own period.
          const link = document.createElement(hasPeriod ? 'a' : 'span')
          if (hasPeriod) link.href = `?${query}`
          link.textContent = `${hasPeriod ? 'Show ' : ''}${readable(min)} to ${readable(max)}`
          const reset = document.createElement('button')
          reset.type = 'button'
          reset.textContent = 'Whole period'
          reset.addEventListener('click', () => plot.setScale('x', { min: data.times[0], max: data.times[data.times.length - 1] }))
          zoomed.replaceChildren(link, reset)
        }]
      }
    }, [data.times, ...data.series.map(({ values }) => values)], element)
    plot.root.setAttribute('aria-hidden', 'true')
    element.append(zoomed)
    element.classList.add('drawn')
    plots.push({ element, plot })
  }
  if (window.uPlot) for (const element of document.querySelectorAll('.plot[data-chart]')) draw(element)
  const resize = () => { for (const { element, plot } of plots) plot.setSize({ width: element.clientWidth, height: 210 }) }
  window.addEventListener('resize', resize)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { for (const { plot } of plots) plot.redraw() })

  // Live figures: one stream, and none while the page is hidden.
  const live = document.querySelector('[data-live]')
  if (live) {
    const set = (name, text) => { for (const one of live.querySelectorAll(`[data-figure=${name}]`)) one.textContent = text }
    const receive = ({ data }) => {
      const figures = JSON.parse(data)
      const open = Object.entries(figures.open)
      set('open', open.length ? open.reduce((sum, [, count]) => sum + count, 0) : '–')
      set('protocols', open.map(([protocol, count]) => `${protocol} ${count}`).join(', '))
      set('requests', number(figures.requests_per_s))
      set('statuses', ['2xx', '3xx', '4xx', '5xx'].map((name, n) => `${name} ${number(figures.statuses_per_s[n])}`).join(', '))
      set('connections', number(figures.connections_per_s))
      const rows = figures.store
      set('store', rows ? (rows.failing ? 'the store cannot be written' : `${rows.queued} rows wait, ${rows.dropped} dropped`) : '')
      set('at', figures.at.replace('T', ' ').replace('Z', ' UTC'))
      live.hidden = false
    }
    let stream = null
    const settle = () => {
      if (document.hidden) {
        stream?.close()
        stream = null
      } else if (!stream) {
        stream = new EventSource(live.dataset.live)
        stream.addEventListener('figures', receive)
      }
    }
    document.addEventListener('visibilitychange', settle)
    window.addEventListener('pagehide', () => { stream?.close(); stream = null })
    window.addEventListener('pageshow', settle)
    settle()
  }
})()
