// All that the page shows, in one place. Views read it and draw; whatever changes it calls
// `change`.

export const state = {
  runs: [],           // as the server describes them
  hidden: new Set(),  // numbers of the runs that are not shown
  answers: [],        // of each run: prediction, attention, map, offsets, log
  format: null,       // of the pictures: {rows, cols, channels}; null: no run has a model yet
  base: null,         // the image before it is scaled
  image: null,        // {rows, cols, pixels}
  place: [0, 0],      // of its upper left corner
  scale: 1,
  label: '',       // the class that it is; '': unknown
  drawing: false,  // strokes are added where the pointer moves
  query: -1,       // the patch whose attention is shown; -1: the class token
  key: -1,         // the other patch of the pair; -1: none
  layer: 0,
  head: -1,      // -1: the mean of all heads
  offset: null,  // the offset that is pointed at: [rows, cols]
  notice: '',    // what the input lacks
};

const views = [];
let scheduled = false;

function redraw() {
  scheduled = false;
  for (const view of views) view(state);
}

export function change(values) {
  Object.assign(state, values);
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(redraw);
}

export function changeAnswer(run, values) {
  Object.assign(state.answers[run], values);
  change({});
}

export function onChange(view) {
  views.push(view);
}

/// The runs that have a model.
export const modelRuns = () => [...state.runs.keys()].filter((index) => !state.runs[index].problem);

// An image's number tells it apart.
const numbers = new WeakMap();
let images = 0;
function numberOf(image) {
  if (!numbers.has(image)) numbers.set(image, ++images);
  return numbers.get(image);
}

/// Of each kind of answer about the input: what it depends on, as text.
export function wantedKeys(run) {
  const image = `${state.runs[run].step} ${numberOf(state.image)}`, placed = `${image} ${state.place}`;
  return {prediction: placed, attention: `${placed} ${state.query}`, map: image};
}

/// Whether all answers of a run are those to the input as it is now.
export function isAnswered(run) {
  const answer = state.answers[run], {map} = answer;
  return Object.entries(wantedKeys(run))
             .every(([kind, key]) => answer[kind] && answer[kind].key === key) &&
      map.cells.length === map.rows * map.cols && answer.offsets !== null;
}
