// The script of `experiment_beacon`: measures one view of a page and sends the figures once, at its end.
//
// docs/beacon.md has the format and the meaning of each figure. The server removes comment lines and indentation before it
// serves the script, so a comment has a line of its own, and each statement ends with a semicolon. Nothing here may throw
// or delay the page: every callback is guarded, and each API may be missing.
(() => {
  const page = document;
  const script = page.currentScript;
  const endpoint = script && script.src;
  if (!endpoint || !navigator.sendBeacon) return;
  const clock = performance;
  const types = (window.PerformanceObserver || {}).supportedEntryTypes || [];
  const own = location.hostname;
  // Hosts to count besides that of the page; all hosts if there are none.
  const wanted = (script.dataset.hosts || '').split(' ').filter(Boolean);
  const isHidden = () => page.visibilityState === 'hidden' && !page.prerendering;
  // Paints of a page in a background tab come when somebody looks at it.
  const isBackground = isHidden();
  const observers = [];
  const files = new Map();
  const interactions = {};
  let isSent;
  let largestPaint;
  let shift = types.includes('layout-shift') ? 0 : -1;
  let session = { sum: 0, first: 0, last: 0 };

  const guarded = (work) => (argument) => {
    try {
      work(argument);
    } catch {}
  };
  // Milliseconds as microseconds, up to an hour.
  const time = (ms) => ms > 0 && ms < 36e5 ? Math.round(ms * 1e3) : '-';

  // Types of initiators, and names of elements. Requests of scripts are no static files.
  const isStatic = /^(audio|css|early-hints|ima?ge?|input|link|script|source|video)$/i;

  // Returns the record of a static file. Other URLs, and files after the first 10,000, get one that is not sent.
  const fileOf = (url) => {
    url = String(url).split('#')[0];
    const file = files.get(url) || {};
    if (/^http/.test(url) && url !== endpoint && files.size < 1e4) files.set(url, file);
    return file;
  };

  const onResource = (entry) => {
    if (!isStatic.test(entry.initiatorType)) return;
    const file = fileOf(entry.name);
    file.start = entry.startTime;
    file.end = entry.responseEnd;
    file.bytes = entry.encodedBodySize;
    if (entry.responseStatus >= 400) file.isFailed = 1;
    for (const { name, duration } of entry.serverTiming || []) {
      // Hosts of arms send the length of each body, or that they refused the request: an element may fail before this script
      // comes. Without a transfer the body is from the cache; Firefox hides sizes of files without `crossorigin` as 0.
      if (name === 'error') file.isFailed = 1;
      if (name === 'size' && entry.transferSize && file.bytes && file.bytes < duration) file.isCut = 1;
    }
  };

  // Events of elements do not bubble, but they can be captured.
  const onElement = ({ type, target }) => {
    if (!isStatic.test(target.tagName)) return;
    const file = fileOf(target.currentSrc || target.src || target.href);
    if (type === 'error') file.isFailed = 1;
    file.end = file.end || clock.now();
  };

  // Files in the memory of the browser have no entries, and elements may be complete before this script comes. A broken
  // image has no width; neither have some SVG.
  const onFound = ({ complete, currentSrc, href, naturalWidth, src }) => {
    if (complete === false) return;
    const file = fileOf(currentSrc || src || href);
    if (naturalWidth === 0 && !/svg/.test(src)) file.isFailed = 1;
  };

  const observe = (type, work) => {
    if (!types.includes(type)) return;
    const take = (entries) => entries.forEach(guarded(work));
    const observer = new PerformanceObserver((list) => take(list.getEntries()));
    observer.observe({ type, buffered: true, durationThreshold: 16 });
    observers.push(() => take(observer.takeRecords()));
  };

  const onInteraction = ({ interactionId, duration }) => {
    if (interactionId) interactions[interactionId] = Math.max(interactions[interactionId] || 0, duration);
  };

  // The largest sum of shifts with gaps below a second, within five seconds.
  const onShift = ({ startTime, value, hadRecentInput }) => {
    if (hadRecentInput) return;
    if (startTime - session.last >= 1e3 || startTime - session.first >= 5e3) session = { sum: 0, first: startTime };
    session.sum += value;
    session.last = startTime;
    shift = Math.max(shift, session.sum);
  };

  // The longest interaction; of every 50, one more is left out.
  const slowInteraction = () => {
    const all = Object.values(interactions).sort((a, b) => b - a);
    return all[Math.min(all.length - 1, Math.floor((clock.interactionCount || all.length) / 50))];
  };

  const entryBy = (by, name) => clock.getEntries && clock['getEntriesBy' + by](name)[0] || {};

  // Half of the id of the view: eight hexadecimal digits.
  const random = () => Math.floor(Math.random() * 2 ** 32).toString(16).padStart(8, 0);

  // Sums by host: that of the page first, then the others in the order of their first files.
  const hostLines = (loaded) => {
    const hosts = { [own]: { count: 0, failed: 0, cut: 0, bytes: 0, end: 0 } };
    for (const [url, file] of files) {
      const name = new URL(url).hostname;
      if (wanted.length && name !== own && !wanted.includes(name)) continue;
      const host = hosts[name] = hosts[name] || { count: 0, failed: 0, cut: 0, bytes: 0, end: 0 };
      host.count++;
      if (file.isCut) host.cut++;
      else if (file.isFailed) host.failed++;
      host.bytes += file.bytes || 0;
      // Files that a visitor starts after the load, by scrolling, do not belong to it.
      if (!(loaded && file.start > loaded)) host.end = Math.max(host.end, file.end || 0);
    }
    return Object.entries(hosts).slice(0, 12).map(([name, { count, failed, cut, bytes, end }]) => {
      return ['h', name, count, failed, cut, bytes, time(end) + '\n'].join(' ');
    }).join('');
  };

  // Called when the page is hidden or left. A page that is shown again from the cache of the browser is no new view.
  const send = ({ type }) => {
    const age = Math.ceil(clock.now());
    if (isSent || page.prerendering || age > 864e5 || !(type === 'pagehide' || isHidden())) return;
    observers.forEach((take) => take());
    page.querySelectorAll('img,script,[rel=stylesheet]').forEach(guarded(onFound));
    const navigation = entryBy('Type', 'navigation');
    const paint = entryBy('Name', 'first-contentful-paint');
    const points = ['activationStart', 'domainLookupStart', 'domainLookupEnd', 'connectStart', 'secureConnectionStart',
      'connectEnd', 'requestStart', 'responseStart', 'responseEnd', 'domContentLoadedEventEnd', 'loadEventEnd'];
    const paints = isBackground ? [0, 0] : [paint.startTime, largestPaint];
    isSent = navigator.sendBeacon(endpoint, [
      'firstbyte 1',
      'v ' + random() + random(),
      'a ' + age,
      ['n', ...points.map((name) => time(navigation[name]))].join(' '),
      ['p', ...paints.map(time), time(slowInteraction()), shift < 0 ? '-' : Math.round(shift * 1e3)].join(' '),
      hostLines(navigation.loadEventEnd) + '.'
    ].join('\n'));
  };

  guarded(() => {
    addEventListener('error', guarded(onElement), true);
    addEventListener('load', guarded(onElement), true);
    page.addEventListener('visibilitychange', guarded(send));
    addEventListener('pagehide', guarded(send));
    observe('resource', onResource);
    observe('largest-contentful-paint', ({ startTime }) => { largestPaint = startTime; });
    observe('first-input', onInteraction);
    observe('event', onInteraction);
    observe('layout-shift', onShift);
  })();
})();
