// Scales, paths and labels of charts. Each call has a slot of equal width; areas and bars are steps over slots.

/** Map positions of calls in `range` (both ends included) to x, and back. */
function slots([first, last], left, width) {
  const step = width / (last - first + 1);
  return {
    first, last, step,
    start: (position) => left + (position - first) * step,
    middle: (position) => left + (position - first + 0.5) * step,
    at: (x) => Math.min(Math.max(first + Math.floor((x - left) / step), first), last),
  };
}

/** Map 0..top to y in a box; larger values are drawn at its edge. */
function heights(top, y, height) {
  return (value) => y + height - (Math.min(Math.max(value, 0), top) / (top || 1)) * height;
}

/** Round to tenths of a pixel, which is precise enough and keeps paths short. */
const tenth = (value) => Math.round(value * 10) / 10;

/** Return up to `count` round numbers from 0 to `top`. */
function ticks(top, count) {
  if (!(top > 0)) return [0];
  const rough = top / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let value = 0; value <= top * 1.0001; value += step) found.push(value);
  return found;
}

/** Return the outline of steps with the edges upper(position) and lower(position). */
function stepArea(scale, upper, lower) {
  let there = "";
  const back = [];
  for (let position = scale.first; position <= scale.last; position++) {
    const from = tenth(scale.start(position)), to = tenth(scale.start(position + 1));
    there += `${there ? "L" : "M"}${from} ${tenth(upper(position))}H${to}`;
    back.push(`L${to} ${tenth(lower(position))}H${from}`);
  }
  return `${there}${back.reverse().join("")}Z`;
}

/** Return a line of steps over slots; null values leave a gap. */
function line(scale, y) {
  let path = "", pen = "M";
  for (let position = scale.first; position <= scale.last; position++) {
    const height = y(position);
    if (height === null) pen = "M";
    else {
      path += `${pen}${tenth(scale.start(position))} ${tenth(height)}H${tenth(scale.start(position + 1))}`;
      pen = "L";
    }
  }
  return path;
}

/** Move labels [{y, ...}] at least `gap` apart, within [top, bottom]. */
function apart(labels, gap, top, bottom) {
  const placed = labels.toSorted((one, other) => one.y - other.y).map((label) => ({ ...label }));
  for (let index = 0; index < placed.length; index++) {
    const least = index ? placed[index - 1].y + gap : top;
    placed[index].y = Math.max(placed[index].y, least);
  }
  for (let index = placed.length - 1, most = bottom; index >= 0; index--) {
    placed[index].y = Math.min(placed[index].y, most);
    most = placed[index].y - gap;
  }
  return placed;
}

/** Return the top of a chart that shows `own`, and `other` too unless that would flatten `own`. */
function topOf(own, other, isWhole) {
  const least = own > 0 ? own : other;
  return (isWhole || other <= least * 2.2 ? Math.max(own, other) : least * 1.5) * 1.06 || 1;
}
