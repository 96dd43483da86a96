// Colours of the style sheet for canvases, which cannot read it by themselves.

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// From violet over green to yellow in even steps of lightness, as in reports.
const RAMP =
    [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];

/// The colour of a share from 0 to 1.
export function ramp(share) {
  const scaled = Math.min(1, Math.max(0, share)) * (RAMP.length - 1);
  const below = Math.min(Math.floor(scaled), RAMP.length - 2), part = scaled - below;
  const mixed =
      RAMP[below].map((value, i) => Math.round(value + part * (RAMP[below + 1][i] - value)));
  return `rgb(${mixed.join(' ')})`;
}

/// The style sheet's class for a run: those that neither mean right nor wrong, most different first.
export const runClass = (index) => `c${[0, 5, 7, 4, 3, 6][index % 6]}`;
