// Pictures on canvases. Each function draws its arguments and reads nothing else but colours.

import {colour, ramp} from './colours.js';

/// A context whose unit is a pixel of an image of these sides, on a canvas that is `width` wide.
export function fitted(canvas, rows, cols, width) {
  const density = window.devicePixelRatio || 1, unit = width / cols;
  const [across, down] = [Math.round(width * density), Math.round(rows * unit * density)];
  if (canvas.width !== across || canvas.height !== down)
    [canvas.width, canvas.height] = [across, down];
  const context = canvas.getContext('2d');
  context.setTransform(unit * density, 0, 0, unit * density, 0, 0);
  context.clearRect(0, 0, cols, rows);
  context.imageSmoothingEnabled = false;
  return context;
}

/// The image at full contrast, or dimmed.
export function drawImage(context, image, channels, dim = 1) {
  const data = new ImageData(image.cols, image.rows);
  for (let pixel = 0; pixel < image.rows * image.cols; ++pixel) {
    for (let c = 0; c < 3; ++c)
      data.data[4 * pixel + c] = dim * image.pixels[pixel * channels + (channels === 1 ? 0 : c)];
    data.data[4 * pixel + 3] = 255;
  }
  const copy = new OffscreenCanvas(image.cols, image.rows);
  copy.getContext('2d').putImageData(data, 0, 0);
  context.drawImage(copy, 0, 0);
}

export function drawFrame(context, [row, col], rows, cols, name, width = 1) {
  context.strokeStyle = colour(name);
  context.lineWidth = width;
  context.strokeRect(col, row, cols, rows);
}

/// Weights of the patches over the image, the largest one opaque.
export function drawWeights(context, weights, [gridRows, gridCols], patch) {
  const largest = Math.max(...weights, 1e-9);
  context.fillStyle = colour('weight');
  weights.forEach((weight, i) => {
    context.globalAlpha = 0.9 * weight / largest;
    context.fillRect(i % gridCols * patch, Math.floor(i / gridCols) * patch, patch, patch);
  });
  context.globalAlpha = 1;
}

/// An outline around a patch; `line` is its width.
export function drawPatch(context, index, gridCols, patch, name, line) {
  if (index < 0) return;
  const corner = [Math.floor(index / gridCols) * patch, index % gridCols * patch];
  drawFrame(context, corner, patch, patch, name, line);
}

/// The pairs of patches (i gathers from j) with p_i - p_j = offset.
export function pairsOf([down, across], [gridRows, gridCols]) {
  const pairs = [];
  for (let row = 0; row < gridRows; ++row)
    for (let col = 0; col < gridCols; ++col) {
      const [r, c] = [row - down, col - across];
      if (r >= 0 && r < gridRows && c >= 0 && c < gridCols) pairs.push([row, col, r, c]);
    }
  return pairs;
}

/// Lines from the patches that are read to dots on those that read them.
export function drawPairs(context, offset, grid, patch) {
  const pairs = pairsOf(offset, grid), centre = (index) => (index + 0.5) * patch;
  context.strokeStyle = context.fillStyle = colour('pair');
  context.lineWidth = patch / 14;
  for (const [row, col, r, c] of pairs) {
    context.globalAlpha = 0.55;
    context.beginPath();
    context.moveTo(centre(c), centre(r));
    context.lineTo(centre(col), centre(row));
    context.stroke();
    context.globalAlpha = 1;
    context.beginPath();
    context.arc(centre(col), centre(row), patch / 8, 0, 7);
    context.fill();
  }
}

/// The map of places. Right and wrong have two colours, and sure ones are stronger. A place fills
/// the block of those that are not known yet.
export function drawMap(context, map, nameOf) {
  const cells = new OffscreenCanvas(map.cols, map.rows), inner = cells.getContext('2d');
  for (const [place, best, probability] of map.cells) {
    const row = Math.floor(place / map.cols), col = place % map.cols;
    const block = [8, 4, 2, 1].find((step) => row % step === 0 && col % step === 0);
    inner.clearRect(col, row, block, block);
    inner.globalAlpha = 0.2 + 0.8 * probability;
    inner.fillStyle = colour(nameOf(best));
    inner.fillRect(col, row, block, block);
  }
  context.drawImage(cells, 0, 0);
}

/// Where something is on a map: a ring that is seen on any colour.
export function drawMark(context, [row, col], size) {
  for (const [name, width] of [['card', 0.5], ['ink', 0.22]]) {
    context.strokeStyle = colour(name);
    context.lineWidth = width * size;
    context.beginPath();
    context.arc(col + 0.5, row + 0.5, size, 0, 7);
    context.stroke();
  }
}

/// Norms by offset; the middle is offset zero.
export function drawNorms(context, table, marked) {
  const cells = new OffscreenCanvas(table.cols, table.rows), inner = cells.getContext('2d');
  const known = table.values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  table.values.forEach((value, i) => {
    if (value === null) return;
    inner.fillStyle = ramp(high > low ? (value - low) / (high - low) : 0.5);
    inner.fillRect(i % table.cols, Math.floor(i / table.cols), 1, 1);
  });
  context.drawImage(cells, 0, 0);
  if (marked) drawFrame(context, marked, 1, 1, 'key', 0.25);
}
