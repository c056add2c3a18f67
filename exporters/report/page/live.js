/* SPDX-License-Identifier: Apache-2.0 */
/* Of a page that is served: listens for newer ones, and exchanges what differs. What the reader
   opened, focused, selected and scrolled to stays, since nodes are changed in place: a node is known
   by its id or data-key, else by its place. What is folded away stays text, known by the id of its
   element, until it is opened. Takes at most a tenth of the time. The page can be read without
   it. */

'use strict';
(function () {
  var bar = document.getElementById('live');
  if (!bar || !window.EventSource || !window.fetch) return;
  var state = document.getElementById('live-state'), ago = document.getElementById('live-age');
  var RETRY = 2000, GONE = 'gone', HERE = 'here', HELD = 'held', FULL = 'full';
  var source = null, timer = null, shown = '', wanted = '', busy = false, paused = false;
  var status = '', newsAt = 0, earliest = 0, offset = 0;
  var folded = new Map(), unfolded = new WeakMap();
  var button = document.createElement('button');
  button.type = 'button';
  button.id = 'live-pause';
  bar.appendChild(button);

  function duration(seconds) {
    if (seconds < 60) return Math.max(0, Math.round(seconds)) + ' s';
    if (seconds < 3600) return Math.round(seconds / 60) + ' min';
    if (seconds < 172800) return Math.round(seconds / 3600) + ' h';
    return Math.round(seconds / 86400) + ' days';
  }
  function time() {
    var at = bar.dataset.time || '';
    return at ? 'the state of ' + at : 'what was here before';
  }
  function say() {
    var words = {here: 'Connected.', gone: 'culprit is gone. This is ' + time() + '.',
      full: 'Too many readers: updates come when one leaves. This is ' + time() + '.',
      held: paused ? 'Paused. This is ' + time() + '.' :
        'Updates wait while text is selected.'}[status] || 'Connecting…';
    if (state.textContent !== words) state.textContent = words;
    bar.className = 'live ' + status;
    button.textContent = paused ? 'Continue' : 'Pause';
    button.title = paused ? 'Continue updates' : 'Pause updates';
    button.setAttribute('aria-pressed', paused ? 'true' : 'false');
    button.hidden = !paused && status !== HERE && status !== HELD;
    tick();
  }
  // Ages, by the clock of the machine that culprit runs on.
  function tick() {
    var now = Date.now();
    ago.textContent = newsAt ? 'Last change ' + duration((now - newsAt) / 1000) + ' ago.' : '';
    document.querySelectorAll('[data-age]').forEach(function (node) {
      var seconds = (now + offset - Number(node.dataset.age)) / 1000;
      node.textContent = '(' + duration(seconds) + ' ago)';
    });
  }

  // -- exchanging ---------------------------------------------------------------------------------
  function key(node) {
    if (node.nodeType !== 1) return '';
    var name = node.dataset && node.dataset.key || node.id || node.getAttribute('aria-labelledby');
    return name ? node.nodeName + name.replace(/^j\d+/, 'j') : '';
  }
  function own(node) {
    return node.nodeType === 1 && (node === bar || node.classList.contains('cursor') ||
      node.nodeName === 'SCRIPT');
  }
  // Whether something is open is the reader's to say.
  function attributes(from, to) {
    var i, name, kept = from.nodeName === 'DETAILS' ? 'open' : '';
    for (i = 0; i < to.attributes.length; i++) {
      name = to.attributes[i].name;
      if (name !== kept && from.getAttribute(name) !== to.attributes[i].value)
        from.setAttribute(name, to.attributes[i].value);
    }
    for (i = from.attributes.length - 1; i >= 0; i--) {
      name = from.attributes[i].name;
      if (name !== kept && !to.hasAttribute(name)) from.removeAttribute(name);
    }
  }
  function children(from, to) {
    var keyed = {}, coming = {}, next = from.firstChild, node, match, name;
    for (node = from.firstChild; node; node = node.nextSibling)
      if ((name = key(node))) keyed[name] = node;
    for (node = to.firstChild; node; node = node.nextSibling)
      if ((name = key(node))) coming[name] = true;
    function pass() {
      while (next && (own(next) || (key(next) && !coming[key(next)]))) {
        var here = next;
        next = next.nextSibling;
        if (!own(here)) here.remove();
      }
    }
    for (node = to.firstChild; node; node = node.nextSibling) {
      if (own(node) || (node.nodeType === 1 && node.id === 'live')) continue;
      pass();
      name = key(node);
      match = name ? keyed[name] : next && !key(next) && next.nodeType === node.nodeType &&
        next.nodeName === node.nodeName ? next : null;
      if (match) {
        if (match === next) next = next.nextSibling;
        else from.insertBefore(match, next);
        exchange(match, node);
        if (name) delete keyed[name];
      } else {
        from.insertBefore(document.importNode(node, true), next);
      }
    }
    while (next) {
      node = next;
      next = next.nextSibling;
      if (!own(node)) node.remove();
    }
  }
  function exchange(from, to) {
    if (from.nodeType !== 1) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    if (isFolded(to)) {
      attributes(from, to);
      exchange(from.firstElementChild, to.firstElementChild);
      return;
    }
    if (from.isEqualNode(to)) return;
    unfolded.delete(from);
    attributes(from, to);
    children(from, to);
  }
  // Tables of many ranks are most of a page, and folded: their rows are taken out of its text before
  // it is read. Nothing in a page but such an element has this markup, since texts are escaped.
  function parsed(text, rows) {
    return new DOMParser().parseFromString(text.replace(
      /(<details class="fold" id="([^"]*)"><summary>[^<]*<\/summary>)([^]*?)(?=<\/details>)/g,
      function (_, head, id, body) { rows.set(id, body); return head; }), 'text/html');
  }
  function isFolded(node) {
    return node.nodeName === 'DETAILS' && folded.has(node.id);
  }
  function unfold(node) {
    var text = folded.get(node.id);
    if (unfolded.get(node) === text) return;
    unfolded.set(node, text);
    var to = new DOMParser().parseFromString('<details>' + text + '</details>', 'text/html')
      .body.firstChild;
    to.insertBefore(node.firstElementChild.cloneNode(true), to.firstChild);
    children(node, to);
  }
  function unfoldOpen() {
    document.querySelectorAll('details[open]').forEach(function (node) {
      if (isFolded(node)) unfold(node);
    });
  }
  document.addEventListener('toggle', function (event) {
    if (!event.target.open || !isFolded(event.target)) return;
    unfold(event.target);
    document.dispatchEvent(new Event('page:changed'));
    tick();
  }, true);
  // Another culprit has another style or script: the whole page is taken anew.
  function isOther(page) {
    function brought(of) {
      return Array.from(of.querySelectorAll('style,script')).map(function (node) {
        return node.textContent;
      }).join('\n');
    }
    return brought(page) !== brought(document);
  }
  function apply(text) {
    var rows = new Map(), page = parsed(text, rows);
    if (!page.getElementById('live')) throw new Error('no page of culprit');
    if (isOther(page)) return location.reload();
    folded = rows;
    note(page.getElementById('live-time'));
    document.title = page.title;
    children(document.body, page.body);
    unfoldOpen();
    document.dispatchEvent(new Event('page:changed'));
  }
  function note(node) {
    if (node) bar.dataset.time = node.textContent;
  }

  // -- asking -------------------------------------------------------------------------------------
  function held() {
    var selection = getSelection();
    return paused || (selection && !selection.isCollapsed && selection.toString() !== '');
  }
  function look() {
    var wait = earliest - performance.now();
    if (busy || !source || wanted === shown) return;
    if (held()) { status = HELD; say(); return; }
    clearTimeout(timer);
    if (wait > 0) { timer = setTimeout(look, wait); return; }
    busy = true;
    fetch(location.pathname + location.search, {cache: 'no-cache'}).then(function (answer) {
      if (!answer.ok) throw new Error('status ' + answer.status);
      var date = Date.parse(answer.headers.get('Date'));
      if (date) offset = date - Date.now();
      var tag = (answer.headers.get('ETag') || '').replace(/^W\//, '').replace(/"/g, '');
      return answer.text().then(function (text) {
        var begun = performance.now(), first = shown === '';
        if (held() && !first) return;
        apply(text);
        shown = tag;
        if (wanted === '') wanted = tag;
        newsAt = Date.now();
        // Style and layout come behind it: they count as much again.
        earliest = performance.now() + 20 * (performance.now() - begun);
      });
    }).then(function () {
      busy = false;
      if (source) { status = held() ? HELD : HERE; say(); }
      if (wanted !== shown && !held()) look();
    }, function () {
      busy = false;
      earliest = performance.now() + RETRY;
      if (source) look();
    });
  }
  function listen() {
    if (source || document.hidden) return;
    source = new EventSource('events');
    source.onopen = function () { status = held() ? HELD : HERE; say(); };
    source.addEventListener('page', function (event) { wanted = event.data; look(); });
    source.onerror = function () {
      status = GONE;
      say();
      // The browser tries again by itself, unless the answer was no stream.
      if (source && source.readyState === EventSource.CLOSED) {
        leave();
        fetch('events', {method: 'HEAD'}).then(function (answer) {
          if (answer.ok) { status = FULL; say(); }
        }, function () {});
        setTimeout(listen, RETRY);
      }
    };
  }
  function leave() {
    if (source) source.close();
    source = null;
    clearTimeout(timer);
  }
  button.addEventListener('click', function () {
    paused = !paused;
    status = paused ? HELD : source ? HERE : status;
    say();
    look();
  });
  document.addEventListener('selectionchange', function () {
    if (status === HELD && !held()) { status = source ? HERE : GONE; say(); look(); }
  });
  // A browser opens few connections to one place: a page that nobody sees holds none.
  document.addEventListener('visibilitychange', function () {
    if (document.hidden) leave(); else listen();
  });
  addEventListener('pagehide', leave);
  addEventListener('pageshow', listen);
  setInterval(tick, 1000);
  note(document.getElementById('live-time'));
  say();
  listen();
})();
