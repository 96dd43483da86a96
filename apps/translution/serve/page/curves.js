// The curves of all runs, and how far each training is.

import {runClass} from './colours.js';
import {element} from './panel.js';
import {state} from './state.js';

const WIDTH = 520, HEIGHT = 190, LEFT = 44, BOTTOM = 24;
const DASHES = {
  train: '',
  static: '',
  held_out: '1 4',
  dynamic: '6 4',
  val: '6 4'
};

function svg(tag, attributes, text = '') {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/// How far a run is, in words.
export function progressText(log) {
  if (log.series.length === 0) return 'no log yet';
  const parts = [`step ${log.step.toLocaleString('en')}${
      log.steps ? ` of ${log.steps.toLocaleString('en')}` : ''}`];
  for (const {metric, split, points} of log.series) {
    const value = points[points.length - 1][1];
    if (metric === 'top1')
      parts.push(`${split} ${(100 * value).toFixed(1)} %`);
    else if (split === 'train')
      parts.push(`loss ${value.toPrecision(3)}`);
  }
  if (log.running && log.samples_per_second > 0)
    parts.push(`${Math.round(log.samples_per_second).toLocaleString('en')} samples/s`);
  if (log.running && log.seconds_left >= 0) parts.push(`${duration(log.seconds_left)} left`);
  return `${
      log.running                            ? 'training' :
          log.steps && log.step >= log.steps ? 'finished' :
                                               'stopped'}: ${parts.join(', ')}`;
}

function ticks(low, high) {
  const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
  const first = Math.ceil(low / step - 1e-9) * step;
  return Array.from(
      {length: Math.floor((high - first) / step + 1e-9) + 1}, (_, i) => first + i * step);
}

function chart(title, lines, text) {
  const figure = element('figure', 'card');
  figure.append(element('h3', '', title));
  const points = lines.flatMap((line) => line.points);
  if (points.length === 0) return figure;
  const most = Math.max(1, ...points.map(([step]) => step));
  let [low, high] = [
    Math.min(0, ...points.map(([, value]) => value)), Math.max(...points.map(([, value]) => value))
  ];
  if (high <= low) high = low + 1;
  const x = (step) => LEFT + step / most * (WIDTH - LEFT - 8);
  const y = (value) => 8 + (high - value) / (high - low) * (HEIGHT - BOTTOM - 8);
  const picture = svg(
      'svg',
      {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title, class: 'chart thin'});
  for (const tick of ticks(low, high)) {
    picture.append(
        svg('path', {class: 'grid', d: `M${LEFT} ${y(tick)}H${WIDTH - 8}`}),
        svg('text', {class: 'tick end', x: LEFT - 6, y: y(tick) + 4}, text(tick)));
  }
  for (const tick of ticks(0, most))
    picture.append(
        svg('text', {class: 'tick middle', x: x(tick), y: HEIGHT - 6}, tick.toLocaleString('en')));
  for (const line of lines) {
    const path = line.points
                     .map(
                         ([step, value], i) =>
                             `${i ? 'L' : 'M'}${x(step).toFixed(1)} ${y(value).toFixed(1)}`)
                     .join('');
    const group = svg('g', {class: line.colour});
    group.append(
        svg('title', {}, line.name),
        svg('path', {class: 'line', d: path, 'stroke-dasharray': DASHES[line.split] || ''}));
    picture.append(group);
  }
  figure.append(picture);
  return figure;
}

function linesOf(wanted) {
  return state.answers.flatMap(
      (answer, run) => (answer.log ? answer.log.series : [])
                           .filter(wanted)
                           .map((series) => ({
                                  ...series,
                                  colour: runClass(run),
                                  name: `${state.runs[run].name}, ${series.split}`
                                })));
}

let drawn = '';
/// Draws the logs into the section, if they are others than before.
export function showCurves(section) {
  const key = JSON.stringify(state.answers.map((answer) => answer.log));
  if (key === drawn) return;
  drawn = key;
  const list = element('ul', 'logs');
  state.answers.forEach((answer, run) => {
    if (!answer.log) return;
    const item = element('li', runClass(run));
    item.append(
        element('i', 'swatch'),
        element('span', '', `${state.runs[run].name}: ${progressText(answer.log)}`));
    list.append(item);
  });
  section.replaceChildren(
      list,
      chart(
          'Loss in training',
          linesOf((series) => series.metric === 'loss' && series.split === 'train'),
          (value) => value.toPrecision(2)),
      chart(
          'Right in the test: solid in the middle, dashed anywhere',
          linesOf((series) => series.metric === 'top1'),
          (value) => `${Math.round(100 * value)} %`));
}
