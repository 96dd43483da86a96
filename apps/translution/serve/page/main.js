// What is asked of the server when something changes, and what is asked again and again.

import {get, pause, pictureBody, post} from './api.js';
import {clear, makeControls, showSample} from './controls.js';
import {showCurves} from './curves.js';
import {element, makePanel} from './panel.js';
import {change, changeAnswer, modelRuns, onChange, state, wantedKeys} from './state.js';

const REFRESH = 2000, MAP_PAUSE = 200, BUSY_PAUSE = 300, READABLE = 8000;  // milliseconds

let troubled = 0;  // when something went wrong last
function trouble(error) {
  if (error)
    troubled = Date.now();
  else if (Date.now() - troubled < READABLE)
    return;
  const line = document.getElementById('trouble');
  line.textContent = error ? error.message : '';
  line.hidden = !error;
}

/// Shows what goes wrong in a promise, until something goes right and there was time to read it.
const report = (promise) => Promise.resolve(promise).then(() => trouble(null), trouble);

// ------------------------------------------------------------------- what follows from the input

/// A function that calls `ask` with the newest input, one call at a time; inputs that were passed
/// over are never asked. Inputs of the same key are the same. `ask` also gets a function that tells
/// whether its input is still the newest. What failed is asked again at the next change.
function latest(ask) {
  let wanted = null, asked = null, busy = false;
  const run = async () => {
    busy = true;
    while (wanted.key !== asked) {
      const input = wanted;
      asked = input.key;
      try {
        await ask(input, () => wanted.key === input.key);
      } catch (error) {
        asked = null;
        if (!error.busy) throw error;
        await pause(BUSY_PAUSE);
      }
    }
  };
  return (input) => {
    wanted = input;
    if (!busy && wanted.key !== asked) report(run().finally(() => (busy = false)));
  };
}

const askPrediction = (run) => latest(async ({key, image, place}) => {
  const {results} = await post(`/predict?run=${run}`, pictureBody(image, place));
  changeAnswer(run, {prediction: {...results[0], key}});
});

const askAttention = (run) => latest(async ({key, image, place, query}) => {
  const maps = await post(`/api/attention?run=${run}&query=${query}`, pictureBody(image, place));
  changeAnswer(run, {attention: {...maps, key}});
});

// The cells come in parts until the map is complete, or until the image is another one.
const askMap = (run) => latest(async ({key, image}, current) => {
  const body = pictureBody(image, [0, 0]);
  let map = null;
  while (current()) {
    const part = await post(`/api/map?run=${run}&known=${map ? map.cells.length : 0}`, body);
    if (!current()) return;
    const same = map && part.step === map.step && part.done >= map.cells.length;
    map = {...part, key, cells: same ? map.cells.concat(part.cells) : part.cells};
    // Until the first cells come, the map of the image before stays.
    if (map.cells.length > 0 && (same || part.cells.length === part.done))
      changeAnswer(run, {map});
    if (map.cells.length === part.rows * part.cols) return;
    await pause(MAP_PAUSE);
  }
});

function follow(run) {
  const ask = {prediction: askPrediction(run), attention: askAttention(run), map: askMap(run)};
  onChange(() => {
    if (!state.image || state.runs[run].problem || state.hidden.has(run)) return;
    const {image, place, query} = state;
    for (const [kind, key] of Object.entries(wantedKeys(run)))
      ask[kind]({key, image, place, query});
  });
}

// ----------------------------------------------------------------------------------- the runs

const panels = [];

function showPanels() {
  const place = document.getElementById('runs');
  state.runs.forEach((run, index) => {
    const kind = `${run.name} ${run.problem === ''}`;
    if (panels[index] && panels[index].kind === kind) return;
    const panel = {kind, ...makePanel(index)};
    if (panels[index])
      place.replaceChild(panel.root, panels[index].root);
    else
      place.append(panel.root);
    panels[index] = panel;
  });
  panels.forEach((panel, index) => {
    panel.root.hidden = state.hidden.has(index);
    panel.show();
  });
}

function toggleRun(index) {
  const hidden = new Set(state.hidden);
  if (!hidden.delete(index)) hidden.add(index);
  change({hidden});
}

// With several runs, a button for each shows and hides it.
function showToggles() {
  const nav = document.getElementById('shown');
  nav.hidden = state.runs.length < 2;
  if (nav.children.length !== state.runs.length)
    nav.replaceChildren(...state.runs.map((run, index) => {
      const button = element('button', '', run.name);
      button.addEventListener('click', () => toggleRun(index));
      return button;
    }));
  [...nav.children].forEach(
      (button, index) => button.setAttribute('aria-pressed', !state.hidden.has(index)));
}

function statusText() {
  return modelRuns()
      .filter((run) => state.answers[run].prediction)
      .map((run) => {
        const best = state.answers[run].prediction.classes[0];
        return `${state.runs[run].name}: ${best.class}`;
      })
      .join(' · ');
}

async function refreshRuns() {
  const {runs} = await get('/api/runs');
  const before = state.runs;
  const answers = runs.map(
      (run, index) => state.answers[index] ||
          {prediction: null, attention: null, map: null, offsets: null, log: null});
  const first = runs.find((run) => !run.problem);
  const format =
      first ? {rows: first.image[0], cols: first.image[1], channels: first.channels} : null;
  change({runs, answers, format});
  if (before.length === 0) runs.forEach((run, index) => follow(index));
  for (const [index, run] of runs.entries()) {
    changeAnswer(index, {log: await get(`/api/log?run=${index}`)});
    if (!run.problem && (!before[index] || before[index].step !== run.step))
      changeAnswer(index, {offsets: (await get(`/api/offsets?run=${index}`)).tables});
  }
}

// Without the test set, there is drawing.
async function firstImage() {
  await showSample('', false).catch((error) => {
    clear();
    change({notice: `${error.message}; draw or open an image`});
  });
}

async function refreshForever() {
  while (true) {
    await report(refreshRuns().then(() => (state.format && !state.image ? firstImage() : null)));
    await pause(REFRESH);
  }
}

makeControls(report);
onChange(showPanels);
onChange(showToggles);
onChange(() => showCurves(document.getElementById('curves')));
onChange(() => (document.getElementById('status').textContent = statusText()));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => change({}));
refreshForever();
