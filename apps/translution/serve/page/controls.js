// The input: its canvas, pointer, keys, buttons. All of it ends in `change`.

import {get, post} from './api.js';
import {drawFrame, drawImage, drawPairs, drawPatch, fitted} from './draw.js';
import {blank, compose, cutOut, inside, resize, stroke} from './ink.js';
import {cellAt, element, patchName} from './panel.js';
import {change, modelRuns, onChange, state} from './state.js';

const WIDTH = 348, SIDE = 28,
      PEN = 1.4;  // of the canvas in CSS pixels; of a drawn digit and its pen in pixels
const byId = (id) => document.getElementById(id);
const firstRun = () => state.runs[modelRuns()[0]];

// ------------------------------------------------------------------------------------ the image

/// Shows another image, in the middle or where the last one was.
function setImage(base, label, keepPlace, scale = state.format.channels === 1 ? 1 : 0.5) {
  change({base, label, scale});
  setScale(scale, keepPlace ? state.place : [
    (state.format.rows - base.rows * scale) / 2, (state.format.cols - base.cols * scale) / 2
  ]);
}

// The size changes around the middle, and ends where the image fills the canvas.
function setScale(wanted, place) {
  const {base, image, format} = state;
  const scale = Math.min(
      Math.max(wanted, 4 / Math.min(base.rows, base.cols)), format.rows / base.rows,
      format.cols / base.cols);
  const [rows, cols] = [Math.round(base.rows * scale), Math.round(base.cols * scale)];
  const at =
      place || [state.place[0] + (image.rows - rows) / 2, state.place[1] + (image.cols - cols) / 2];
  const resized = resize(base, format.channels, rows, cols);
  change({scale, image: resized, place: inside(at, resized, format)});
}

const moveTo = (place) => change({place: inside(place, state.image, state.format)});

let shown = 0;
export async function showSample(label = '', keepPlace = true) {
  const wanted = label === '' ? '' : `&class=${encodeURIComponent(label)}`;
  const sample = await get(`/api/sample?index=${shown++}${wanted}`);
  change({drawing: false});
  setImage(sample.image, sample.label, keepPlace);
}

export function clear() {
  const {rows, cols, channels} = state.format;
  const side = Math.min(SIDE, rows, cols);
  setImage(blank(side, side, channels), '', false, 1);
  change({drawing: true});
}

async function open(input) {
  const [file] = input.files;
  if (!file) return;
  input.value = '';  // so that the same file can be chosen again
  const {image} = await post('/api/picture', file);
  change({drawing: false});
  setImage(image, '', false);
}

// ----------------------------------------------------------------------------------- the pointer

// What is drawn goes onto the whole canvas, and is then cut out again so that it can be moved.
function drawLine(from, to) {
  const {format} = state;
  const inked = stroke(compose(state.image, state.place, format), format.channels, from, to, PEN);
  const cut = cutOut(inked, format.channels, Math.min(SIDE, format.rows, format.cols));
  if (cut) change({base: cut.image, image: cut.image, place: cut.place, scale: 1});
}

function listenToPointer(canvas) {
  let last = null, moved = false;
  const at = (event) => cellAt(event, canvas, state.format.rows, state.format.cols);
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = {pointer: at(event), place: state.place};
    moved = false;
    if (state.drawing) drawLine(last.pointer, last.pointer);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!last) return;
    const pointer = at(event);
    const way = [pointer[0] - last.pointer[0], pointer[1] - last.pointer[1]];
    moved = moved || Math.hypot(...way) > 1;
    if (state.drawing) {
      drawLine(last.pointer, pointer);
      last.pointer = pointer;
    } else if (moved) {
      moveTo([last.place[0] + way[0], last.place[1] + way[1]]);
    }
  });
  canvas.addEventListener('pointerup', (event) => {
    if (last && !moved && !state.drawing) choosePatch(at(event));
    last = null;
  });
  canvas.addEventListener('pointercancel', () => (last = null));
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    setScale(state.scale * (event.deltaY < 0 ? 1.05 : 1 / 1.05));
  }, {passive: false});
}

function choosePatch([row, col]) {
  const {grid} = firstRun();
  const patch = Math.floor(row / state.format.rows * grid[0]) * grid[1] +
      Math.floor(col / state.format.cols * grid[1]);
  change({query: patch === state.query ? -1 : patch, key: -1});
}

// -------------------------------------------------------------------------------------- the keys

const STEPS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1]
};
const toggleDrawing = () => change({drawing: !state.drawing});

// From -1 (all heads, the class token) to the last one, and back.
const cycle = (value, count, least) => (value + 1 < count ? value + 1 : least);

// The next patch of the grid after the one numbered `value`.
const nextPatch = (value, least) => cycle(value, firstRun().grid[0] * firstRun().grid[1], least);

// The offset of the chosen pair of patches, as if it were pointed at; again: none.
function toggleOffset() {
  const cols = firstRun().grid[1], at = (patch) => [Math.floor(patch / cols), patch % cols];
  const [to, from] = state.query < 0 || state.key < 0 ? [[0, 0], [0, 0]] : [at(state.query), at(state.key)];
  change({offset: state.offset ? null : [to[0] - from[0], to[1] - from[1]]});
}

const KEYS = {
  '+': () => setScale(state.scale * 1.1),
  '=': () => setScale(state.scale * 1.1),
  '-': () => setScale(state.scale / 1.1),
  n: () => showSample(),
  d: toggleDrawing,
  c: clear,
  l: () => change({layer: cycle(state.layer, firstRun().layers, 0)}),
  h: () => change({head: cycle(state.head, firstRun().heads, -1)}),
  p: () => change({query: nextPatch(state.query, 0), key: -1}),
  k: () => change({key: nextPatch(state.key, -1)}),
  o: toggleOffset,
  Escape: () => change({query: -1, key: -1, offset: null}),
};

function listenToKeys(report) {
  document.addEventListener('keydown', (event) => {
    if (!state.image || event.ctrlKey || event.metaKey || event.altKey ||
        /INPUT|SELECT/.test(event.target.tagName))
      return;
    const step = STEPS[event.key],
          key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (step) {
      const far = event.shiftKey ? state.format.rows / firstRun().grid[0] : 1;
      moveTo([state.place[0] + far * step[0], state.place[1] + far * step[1]]);
    } else if (firstRun().classes.includes(key)) {
      report(showSample(key));
    } else if (KEYS[key]) {
      report(KEYS[key]());
    } else {
      return;
    }
    event.preventDefault();
  });
}

// ------------------------------------------------------------------------------------- the rest

function fillSelect(select, entries) {
  if (select.children.length === entries.length) return;
  select.replaceChildren(...entries.map(([value, text]) => {
    const option = element('option', '', text);
    option.value = value;
    return option;
  }));
}

const numbered = (count, what) => Array.from({length: count}, (_, i) => [i, `${what}${i + 1}`]);

function showControls() {
  if (!state.format || !state.image) return;
  const run = firstRun(), canvas = byId('canvas'), patch = state.format.rows / run.grid[0];
  const context = fitted(canvas, state.format.rows, state.format.cols, WIDTH);
  drawImage(context, compose(state.image, state.place, state.format), state.format.channels);
  drawFrame(context, state.place, state.image.rows, state.image.cols, 'faint', 0.25);
  drawPatch(context, state.query, run.grid[1], patch, 'query', state.format.rows / 90);
  drawPatch(context, state.key, run.grid[1], patch, 'key', state.format.rows / 90);
  if (state.offset) drawPairs(context, state.offset, run.grid, patch);
  canvas.classList.toggle('drawing', state.drawing);
  canvas.setAttribute(
      'aria-label', `${state.label || 'image'} at row ${state.place[0]}, column ${state.place[1]}`);
  byId('place').textContent = `row ${state.place[0]}, column ${state.place[1]}, ${
                                  state.image.rows}×${state.image.cols} pixels; ` +
      patchName(state.query, run.grid[1]);
  byId('notice').textContent = state.notice;
  byId('draw').setAttribute('aria-pressed', state.drawing);
  byId('scale').value = state.scale;
  fillSelect(byId('label'), [['', 'unknown'], ...run.classes.map((name) => [name, name])]);
  fillSelect(byId('layer'), numbered(run.layers, ''));
  fillSelect(byId('head'), [[-1, 'mean'], ...numbered(run.heads, '')]);
  byId('label').value = state.label;
  byId('layer').value = state.layer;
  byId('head').value = state.head;
  byId('whole').textContent = run.cls ? 'Class token' : 'All patches';
}

/// `report` shows what goes wrong in a promise.
export function makeControls(report) {
  listenToPointer(byId('canvas'));
  listenToKeys(report);
  byId('another').addEventListener('click', () => report(showSample()));
  byId('draw').addEventListener('click', toggleDrawing);
  byId('clear').addEventListener('click', clear);
  byId('file').addEventListener('change', (event) => report(open(event.target)));
  byId('scale').addEventListener('input', (event) => setScale(Number(event.target.value)));
  byId('label').addEventListener('change', (event) => change({label: event.target.value}));
  byId('layer').addEventListener('change', (event) => change({layer: Number(event.target.value)}));
  byId('head').addEventListener('change', (event) => change({head: Number(event.target.value)}));
  byId('whole').addEventListener('click', () => change({query: -1, key: -1}));
  onChange(showControls);
}
