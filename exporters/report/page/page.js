/* SPDX-License-Identifier: Apache-2.0 */
/* The readout under the pointer: finds the line that is nearest to it, and writes rank, time and
   value. The page is whole without it. Comments like this one do not get into the page. */

'use strict';
(function () {
  var NS = 'http://www.w3.org/2000/svg';
  function make(parent, name, attributes) {
    var node = document.createElementNS(NS, name);
    for (var key in attributes) node.setAttribute(key, attributes[key]);
    parent.appendChild(node);
    return node;
  }
  function bytes(value) {
    var units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'], i = 0;
    while (Math.abs(value) >= (i ? 1023.5 : 1024) && i < 6) { value /= 1024; i++; }
    var size = Math.abs(value);
    var digits = i === 0 ? 0 : size < 9.995 ? 2 : size < 999.95 ? 1 : 0;
    return value.toFixed(digits) + ' ' + units[i];
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
  function height(line, x) {
    for (var r = 0; r < line.runs.length; r++) {
      var points = line.runs[r], last = points.length - 1;
      if (x < points[0][0] - 5 || x > points[last][0] + 5) continue;
      var low = 0, high = last;
      while (high - low > 1) {
        var middle = low + high >> 1;
        if (points[middle][0] <= x) low = middle; else high = middle;
      }
      var a = points[low], b = points[high], wide = b[0] - a[0];
      var share = wide > 0 ? Math.min(1, Math.max(0, (x - a[0]) / wide)) : 0;
      return a[1] + (b[1] - a[1]) * share;
    }
    return null;
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
    var box, range, span, lines = null, lit = null;
    if (known.has(svg)) return;
    known.add(svg);
    read();
    var cursor = make(svg, 'g', {'class': 'cursor', 'aria-hidden': 'true',
      'visibility': 'hidden', 'pointer-events': 'none',
      'transform': 'translate(' + box[0] + ' ' + box[1] + ')'});
    var rule = make(cursor, 'path', {}), dot = make(cursor, 'circle', {r: 3.5});
    var back = make(cursor, 'rect', {rx: 4, height: 22});
    var label = make(cursor, 'text', {});
    function light(line) {
      if (lit === line) return;
      if (lit) lit.group.classList.remove('on');
      if (line) line.group.classList.add('on');
      lit = line;
    }
    function read() {
      box = svg.dataset.plot.split(' ').map(Number);
      range = svg.dataset.range.split(' ').map(Number);
      span = Number(svg.dataset.seconds);
      lines = null;
    }
    function hide() { cursor.setAttribute('visibility', 'hidden'); light(null); }
    function show(event) {
      var at = svg.createSVGPoint();
      at.x = event.clientX; at.y = event.clientY;
      at = at.matrixTransform(svg.getScreenCTM().inverse());
      var x = at.x - box[0], y = at.y - box[1];
      if (x < 0 || x > box[2] || y < 0 || y > box[3]) return hide();
      lines = lines || Array.from(svg.querySelectorAll('g.l')).map(function (group) {
        return {group: group, runs: runs(group.querySelector('path')),
          name: group.querySelector('title').textContent.split(':')[0]};
      });
      var best = null, bestY = 0;
      lines.forEach(function (line) {
        var h = height(line, x * 10);
        if (h !== null && (best === null || Math.abs(h / 10 - y) < Math.abs(bestY - y))) {
          best = line; bestY = h / 10;
        }
      });
      if (best === null) return hide();
      light(best);
      var value = range[1] - bestY / box[3] * (range[1] - range[0]);
      label.textContent = best.name + ', ' + seconds(x / box[2] * span) + ': ' +
        (svg.dataset.unit === 'bytes' ? bytes(value) : value.toFixed(1) + ' %');
      rule.setAttribute('d', 'M' + x + ' 0V' + box[3]);
      dot.setAttribute('cx', x); dot.setAttribute('cy', bestY);
      cursor.setAttribute('visibility', 'visible');
      var width = label.getComputedTextLength() + 16;
      var left = x + 12 + width > box[2] + 80 ? x - 12 - width : x + 12;
      var top = Math.max(2, Math.min(box[3] - 24, bestY - 30));
      back.setAttribute('x', left); back.setAttribute('y', top);
      back.setAttribute('width', width);
      label.setAttribute('x', left + 8); label.setAttribute('y', top + 15.5);
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
