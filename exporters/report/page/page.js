/* SPDX-License-Identifier: Apache-2.0 */
/* The readout under the pointer: the time, and the value that each line has there, in the unit of
   the axis; the line that is nearest is bold. Of very many lines those of suspects and the nearest,
   and from where to where the others lie. The page is whole without it. Comments like this one do
   not get into the page. */

'use strict';
(function () {
  var NS = 'http://www.w3.org/2000/svg', ROWS = 12, ROWS_NARROW = 5, NARROW = 400;
  function make(parent, name, attributes) {
    var node = document.createElementNS(NS, name);
    for (var key in attributes) node.setAttribute(key, attributes[key]);
    parent.appendChild(node);
    return node;
  }
  function seconds(value) {
    if (value < 0.9995) return (value * 1000).toFixed(0) + ' ms';
    if (value < 59.995) return value.toFixed(value < 9.995 ? 2 : 1) + ' s';
    var whole = Math.round(value);
    if (value < 3599.5) return Math.floor(whole / 60) + ' min ' + whole % 60 + ' s';
    whole = Math.round(value / 60);
    return Math.floor(whole / 60) + ' h ' + whole % 60 + ' min';
  }
  // Runs of points, in tenths of a unit; pen up between them.
  function runs(path) {
    return path.getAttribute('d').split('M').slice(1).map(function (run) {
      var numbers = run.match(/-?\d+/g).map(Number), x = numbers[0], y = numbers[1];
      var points = [[x, y]];
      for (var i = 2; i + 1 < numbers.length; i += 2)
        points.push([x += numbers[i], y += numbers[i + 1]]);
      return points;
    });
  }
  // The height at this place, between the points beside it.
  function at(points, x) {
    var low = 0, high = points.length - 1;
    while (high - low > 1) {
      var middle = low + high >> 1;
      if (points[middle][0] <= x) low = middle; else high = middle;
    }
    var a = points[low], b = points[high], wide = b[0] - a[0];
    var share = wide > 0 ? Math.min(1, Math.max(0, (x - a[0]) / wide)) : 0;
    return a[1] + (b[1] - a[1]) * share;
  }
  function height(line, x) {
    for (var r = 0; r < line.runs.length; r++) {
      var points = line.runs[r];
      if (x >= points[0][0] - 5 && x <= points[points.length - 1][0] + 5) return at(points, x);
    }
    return null;
  }
  function pairs(text) {
    var numbers = text.match(/-?\d+/g).map(Number), points = [];
    for (var i = 0; i + 1 < numbers.length; i += 2) points.push([numbers[i], numbers[i + 1]]);
    return points;
  }
  // Says which boxes hold more than they show.
  function measure() {
    document.querySelectorAll('.wide').forEach(function (box) {
      var scroll = box.querySelector('.scroll');
      box.classList.toggle('over', scroll.scrollWidth > scroll.clientWidth);
    });
  }
  addEventListener('resize', measure);
  document.addEventListener('toggle', measure, true);
  var known = new WeakSet();
  function dress(svg) {
    var plot, range, lines = null, lit = null;
    if (known.has(svg)) return;
    known.add(svg);
    read();
    var cursor = make(svg, 'g', {'class': 'cursor', 'aria-hidden': 'true',
      'visibility': 'hidden', 'pointer-events': 'none',
      'transform': 'translate(0 ' + plot[0] + ')'});
    var rule = make(cursor, 'line', {y1: 0, y2: plot[1]}), dot = make(cursor, 'circle', {r: 3.5});
    var label = document.createElement('div');
    label.className = 'readout cursor';
    label.hidden = true;
    label.setAttribute('aria-hidden', 'true');
    svg.parentNode.appendChild(label);
    function light(line) {
      if (lit === line) return;
      if (lit) lit.group.classList.remove('on');
      if (line) line.group.classList.add('on');
      lit = line;
    }
    function read() {
      plot = svg.dataset.plot.split(' ').map(Number);
      range = svg.dataset.range.split(' ').map(Number);
      lines = null;
    }
    function hide() {
      cursor.setAttribute('visibility', 'hidden');
      label.hidden = true;
      light(null);
    }
    // In the axis's unit, from a height in pixels.
    function value(y) { return range[1] - y / plot[1] * (range[1] - range[0]); }
    function written(number) {
      return number.toFixed(Number(svg.dataset.digits)) + '\u00a0' + svg.dataset.unit;
    }
    function fromTo(y, other) {
      return value(Math.max(y, other)).toFixed(Number(svg.dataset.digits)) + ' to ' +
        written(value(Math.min(y, other)));
    }
    function row(name, text, classes) {
      var p = label.appendChild(document.createElement('p'));
      p.className = classes;
      p.appendChild(document.createElement('span')).textContent = name;
      p.appendChild(document.createElement('span')).textContent = text;
    }
    // The nearest, suspects, then who is near; from above to below.
    function chosen(there, y, width) {
      function far(line) { return Math.abs(line.y - y); }
      var near = there.slice().sort(function (a, b) { return far(a) - far(b); });
      var order = [near[0]].concat(near.slice(1).sort(function (a, b) {
        return b.suspect - a.suspect || far(a) - far(b);
      }));
      return order.slice(0, width < NARROW ? ROWS_NARROW : ROWS).sort(function (a, b) {
        return a.y - b.y;
      });
    }
    function fill(there, best, x, y, width) {
      var shown = chosen(there, y, width), rest = there.filter(function (line) {
        return shown.indexOf(line) < 0;
      }).map(function (line) { return line.y; });
      label.textContent = '';
      row(seconds(x / width * Number(svg.dataset.seconds)), '', '');
      shown.forEach(function (line) {
        row(line.name, written(value(line.y)), line.look + (line === best ? ' near' : ''));
      });
      if (rest.length) row(rest.length + ' more', fromTo(Math.max.apply(null, rest),
        Math.min.apply(null, rest)), 'm');
      var others = band(x / width * plot[2]);
      if (others) row(others.name, fromTo(others.least / 10, others.most / 10), 'm');
    }
    // The others together: their least and most at this place.
    function band(x) {
      var group = svg.querySelector('.band'), found = null;
      if (!group) return null;
      group.querySelector('path').getAttribute('d').split('M').slice(1).forEach(function (run) {
        var halves = run.split('V'), above = pairs(halves[0]);
        var below = pairs(halves[1].replace(/^-?\d+/, '')).reverse();
        if (x < above[0][0] || x > above[above.length - 1][0]) return;
        found = {name: group.querySelector('title').textContent.replace('least and most of ', ''),
          most: at(above, x), least: at(below, x)};
      });
      return found;
    }
    function look() {
      return Array.from(svg.querySelectorAll('g.l')).map(function (group) {
        var look = (group.getAttribute('class').match(/\b(c\d|m)\b/) || ['m'])[0];
        return {group: group, runs: runs(group.querySelector('path')), look: look,
          suspect: look === 'm' ? 0 : 1,
          name: group.querySelector('title').textContent.split(':')[0]};
      });
    }
    // Beside the pointer, on the side where there is more, and never outside.
    function place(box, x) {
      var room = svg.parentNode.getBoundingClientRect(), from = box.left - room.left + x;
      label.hidden = false;
      label.style.top = plot[0] + 4 + 'px';
      label.style.left = '0';
      var width = label.offsetWidth, left = x > box.width / 2 ? from - 14 - width : from + 14;
      label.style.left = Math.max(0, Math.min(left, room.width - width)) + 'px';
    }
    function show(event) {
      var box = svg.getBoundingClientRect(), best = null;
      var x = event.clientX - box.left, y = event.clientY - box.top - plot[0];
      if (x < 0 || x > box.width || y < 0 || y > plot[1]) return hide();
      lines = lines || look();
      var there = lines.filter(function (line) {
        var h = height(line, x / box.width * plot[2]);
        line.y = h / 10;
        return h !== null;
      });
      there.forEach(function (line) {
        if (!best || Math.abs(line.y - y) < Math.abs(best.y - y)) best = line;
      });
      if (!best) return hide();
      light(best);
      fill(there, best, x, y, box.width);
      rule.setAttribute('x1', x); rule.setAttribute('x2', x);
      dot.setAttribute('cx', x); dot.setAttribute('cy', best.y);
      cursor.setAttribute('visibility', 'visible');
      place(box, x);
    }
    svg.addEventListener('pointermove', show);
    svg.addEventListener('pointerdown', show);
    svg.addEventListener('pointerleave', hide);
    document.addEventListener('page:changed', function () { read(); hide(); });
  }
  // Also for charts that came later (live.js).
  function prepare() {
    document.querySelectorAll('svg.plot').forEach(dress);
    measure();
  }
  document.addEventListener('page:changed', prepare);
  prepare();
})();
