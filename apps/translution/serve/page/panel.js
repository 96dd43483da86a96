// The panel of one run: what it predicts, where it is right, what it attends to, and its matrices.

import {runClass} from './colours.js';
import {drawImage, drawMap, drawMark, drawNorms, drawPairs, drawPatch, drawWeights, fitted, pairsOf} from './draw.js';
import {compose, inside} from './ink.js';
import {change, isAnswered, state} from './state.js';

const WIDE = 216, SMALL = 46, NORMS = 116;  // widths of pictures, in CSS pixels
const percent = (share) => `${(100 * share).toFixed(share > 0.0995 ? 0 : 1)} %`;
const signed = (number) => (number > 0 ? `+${number}` : `${number}`).replace('-', '−');
const grouped = (count) => count.toLocaleString('en');

export function element(tag, className = '', text = '') {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

const mean = (lists) =>
    lists[0].map((_, i) => lists.reduce((sum, list) => sum + list[i], 0) / lists.length);
const chosen = (heads) => (state.head < 0 ? mean(heads) : heads[state.head]);

/// Row and column of a pointer, in units of the canvas's picture.
export function cellAt(event, canvas, rows, cols) {
  const box = canvas.getBoundingClientRect();
  return [
    (event.clientY - box.top) / box.height * rows, (event.clientX - box.left) / box.width * cols
  ];
}

export function patchName(index, gridCols) {
  return index < 0 ? 'class token' :
                     `patch ${Math.floor(index / gridCols) + 1},${index % gridCols + 1}`;
}

// ------------------------------------------------------------------------------------ prediction

function bar(entry, isLabel) {
  const row = element('div', isLabel ? 'bar label' : 'bar');
  const fill = element('i');
  fill.style.width = `${100 * entry.probability}%`;
  const track = element('span', 'track');
  track.append(fill);
  row.append(
      element('b', '', entry.class), track, element('span', 'share', percent(entry.probability)));
  return row;
}

function showPrediction(view, run, answer) {
  const {classes} = answer.prediction;
  const best = classes[0], known = state.label !== '';
  const right = best.class === state.label;
  view.verdict.className = `verdict ${known ? (right ? 'right' : 'wrong') : ''}`;
  const mark = known ? (right ? '  ✓ right' : '  ✗ wrong') : '';
  view.verdict.replaceChildren(
      element('span', 'guess', best.class),
      element('span', '', `  ${percent(best.probability)}${mark}`));
  const order = run.classes.length > 10 ?
      classes :
      [...classes].sort((a, b) => run.classes.indexOf(a.class) - run.classes.indexOf(b.class));
  view.bars.replaceChildren(...order.map((entry) => bar(entry, entry.class === state.label)));
}

// ------------------------------------------------------------------------------------------- map

function mapText(run, map) {
  if (state.label === '')
    return `${percent(map.done / (map.rows * map.cols))} of ${grouped(map.rows * map.cols)} places`;
  const right = map.cells.filter(([, best]) => run.classes[best] === state.label).length;
  const all = map.rows * map.cols;
  const open = map.done < all ? `, ${percent(map.done / all)} done` : '';
  return `right at ${grouped(right)} of ${grouped(map.done)} places (${
      percent(right / Math.max(1, map.done))})${open}`;
}

const mapSize =
    () => [state.format.rows - state.image.rows + 1, state.format.cols - state.image.cols + 1];

function showMap(view, run, answer) {
  const [rows, cols] = mapSize(), context = fitted(view.map, rows, cols, WIDE);
  const nameOf = (best) => state.label === '' ? 'heat' :
      run.classes[best] === state.label       ? 'right' :
                                                'wrong';
  if (answer.map && answer.map.rows === rows) drawMap(context, answer.map, nameOf);
  drawMark(context, state.place, cols / 40);
  view.mapText.textContent = answer.map ? mapText(run, answer.map) : '';
}

// ------------------------------------------------------------------------------------- attention

function pairText(run, attention) {
  const from = patchName(state.query, run.grid[1]);
  if (state.key < 0)
    return `${from}: ${run.cls || state.query >= 0 ? 'what it attends to' : 'mean of all patches'}`;
  const at = (maps) => chosen(maps[state.layer])[state.key];
  let text =
      `${from} → ${patchName(state.key, run.grid[1])}: attention ${percent(at(attention.weights))}`;
  if (attention.relative && attention.relative[state.layer].length > 0) {
    const [shared, relative] = [at(attention.shared), at(attention.relative)];
    const part = Math.abs(relative) / (Math.abs(relative) + Math.abs(shared) + 1e-12);
    text +=
        `; score ${signed(shared.toFixed(2))} shared, ${signed(relative.toFixed(2))} relative: ` +
        `the relative part is ${percent(part)}`;
  }
  return text;
}

function showAttention(view, run, answer) {
  const {attention} = answer, {format} = state, patch = format.rows / run.grid[0];
  const canvas = compose(state.image, state.place, format);
  const context = fitted(view.attention, format.rows, format.cols, WIDE);
  drawImage(context, canvas, format.channels, 0.7);
  drawWeights(context, chosen(attention.weights[state.layer]), run.grid, patch);
  drawPatch(context, state.query, run.grid[1], patch, 'query', format.rows / 70);
  drawPatch(context, state.key, run.grid[1], patch, 'key', format.rows / 70);
  if (state.offset) drawPairs(context, state.offset, run.grid, patch);
  view.pairText.textContent = pairText(run, attention);
  view.thumbs.forEach(({button, layer, head}) => {
    const small = fitted(button.firstChild, format.rows, format.cols, SMALL);
    drawImage(small, canvas, format.channels, 0.6);
    drawWeights(small, attention.weights[layer][head], run.grid, patch);
    button.setAttribute('aria-pressed', layer === state.layer && head === state.head);
  });
}

// --------------------------------------------------------------------------------------- offsets

function offsetText(run, tables) {
  const [down, across] = state.offset;
  const norms = tables.map((table) => {
    const value = table.values[(down + run.grid[0] - 1) * table.cols + across + run.grid[1] - 1];
    return `${table.role} ${value === null ? '–' : value.toFixed(2)}`;
  });
  return `offset ${signed(down)},${signed(across)}: ${
             grouped(pairsOf(state.offset, run.grid).length)} pairs of patches; ` +
      `norm of ${norms.join(', ')}`;
}

function showOffsets(view, run, answer) {
  const tables =
      answer.offsets
          .map((table) => ({...table, role: table.table.split(' ')[2].replace('_offsets', '')}))
          .filter((table) => table.table.startsWith(`layer ${state.layer + 1} `));
  if (tables.length === 0) {
    view.offsetText.textContent = answer.offsets.length === 0 ?
        'One set of matrices for all offsets.' :
        'This layer has one set of matrices for all offsets.';
    view.norms.replaceChildren();
    return;
  }
  if (view.norms.children.length !== tables.length)
    view.norms.replaceChildren(...tables.map((table) => normsFigure(run, table)));
  tables.forEach((table, i) => {
    const figure = view.norms.children[i];
    figure.lastChild.textContent = table.role;
    const marked =
        state.offset && [state.offset[0] + run.grid[0] - 1, state.offset[1] + run.grid[1] - 1];
    drawNorms(fitted(figure.firstChild, table.rows, table.cols, NORMS), table, marked);
  });
  view.offsetText.textContent = state.offset ?
      offsetText(run, tables) :
      'Norm of the matrix of each offset; point at one to see its pairs.';
}

function normsFigure(run, table) {
  const figure = element('figure'), canvas = element('canvas');
  canvas.addEventListener('pointermove', (event) => {
    const [row, col] = cellAt(event, canvas, table.rows, table.cols).map(Math.floor);
    if (row < 0 || col < 0 || row >= table.rows || col >= table.cols) return;
    change({offset: [row - run.grid[0] + 1, col - run.grid[1] + 1]});
  });
  canvas.addEventListener('pointerleave', () => change({offset: null}));
  figure.append(canvas, element('figcaption'));
  return figure;
}

// ----------------------------------------------------------------------------------------- panel

function patchAt(event, canvas, run) {
  const [row, col] = cellAt(event, canvas, run.grid[0], run.grid[1]).map(Math.floor);
  return row * run.grid[1] + col;
}

// A click chooses the query, a second one its partner; a click on the query returns to the class
// token.
function listen(view, run) {
  view.attention.addEventListener('click', (event) => {
    const patch = patchAt(event, view.attention, run);
    if (patch === state.query)
      change({query: -1, key: -1});
    else if (state.query < 0)
      change({query: patch, key: -1});
    else
      change({key: patch === state.key ? -1 : patch});
  });
  view.map.addEventListener('click', (event) => {
    const place = cellAt(event, view.map, ...mapSize()).map(Math.floor);
    change({place: inside(place, state.image, state.format)});
  });
}

function thumbsOf(run) {
  const thumbs = [];
  for (let layer = 0; layer < run.layers; ++layer)
    for (let head = 0; head < run.heads; ++head) {
      const button = element('button', 'thumb');
      button.title = `layer ${layer + 1}, head ${head + 1}`;
      button.append(element('canvas'));
      button.addEventListener(
          'click',
          () => change({layer, head: state.head === head && state.layer === layer ? -1 : head}));
      thumbs.push({button, layer, head});
    }
  return thumbs;
}

// In the colours of the map.
const mapTitle = () =>
    ['Where it is ', element('span', 'right', 'right'), ' or ', element('span', 'wrong', 'wrong')];

function figureOf(title, ...parts) {
  const figure = element('figure'), head = element('h3');
  head.append(...[title].flat());
  figure.append(head, ...parts);
  return figure;
}

/// The panel of run `index`: {root, show()}.
export function makePanel(index) {
  const run = state.runs[index];
  const view = {
    root: element('article', 'card run'),
    verdict: element('p', 'verdict'),
    bars: element('div', 'bars'),
    map: element('canvas', 'map'),
    mapText: element('p', 'note map-text'),
    attention: element('canvas', 'attention'),
    pairText: element('p', 'note pair-text'),
    norms: element('div', 'norms'),
    offsetText: element('p', 'note offset-text'),
    message: element('p', 'note message')
  };
  const title = element('h2', runClass(index));
  title.append(element('i', 'swatch'), element('span', 'name', run.name));
  view.root.append(title);
  view.facts = element('p', 'note facts');
  view.root.append(view.facts, view.message);
  if (!run.problem) {
    const about = element('div', 'sides');
    about.append(
        figureOf('Prediction', view.verdict, view.bars),
        figureOf(mapTitle(), view.map, view.mapText));
    view.thumbs = thumbsOf(run);
    const grid = element('div', 'thumbs');
    grid.style.gridTemplateColumns = `repeat(${run.heads}, max-content)`;
    grid.append(...view.thumbs.map(({button}) => button));
    const looks = element('div', 'sides');
    looks.append(figureOf('Attention', view.attention), figureOf('Layers and heads', grid));
    view.root.append(
        about, looks, view.pairText, figureOf('Matrices by offset', view.norms, view.offsetText));
    listen(view, run);
  }
  return {root: view.root, show: () => show(view, index)};
}

function show(view, index) {
  const run = state.runs[index], answer = state.answers[index];
  view.message.textContent = run.problem;
  view.message.hidden = view.message.textContent === '';
  if (run.problem || !state.image) return;
  view.root.setAttribute('aria-busy', !isAnswered(index));
  view.facts.textContent = `${run.method}, ${run.model}, ${
      grouped(run.parameters)} parameters, step ${grouped(run.step)}`;
  if (answer.prediction) showPrediction(view, run, answer);
  showMap(view, run, answer);
  if (answer.attention) showAttention(view, run, answer);
  if (answer.offsets) showOffsets(view, run, answer);
}
