// Images as {rows, cols, pixels} with `channels` bytes a pixel. All functions return new images.

export function blank(rows, cols, channels) {
  return {rows, cols, pixels: new Array(rows * cols * channels).fill(0)};
}

/// Weights of the source pixels under each target pixel: a triangle as wide as a pixel of the
/// larger grid.
function weights(from, to) {
  const ratio = from / to, reach = Math.max(1, ratio);
  return Array.from({length: to}, (_, t) => {
    const centre = (t + 0.5) * ratio, taps = [];
    for (let s = Math.max(0, Math.floor(centre - reach));
         s < Math.min(from, Math.ceil(centre + reach)); ++s) {
      const weight = 1 - Math.abs(s + 0.5 - centre) / reach;
      if (weight > 0) taps.push([s, weight]);
    }
    const sum = taps.reduce((total, tap) => total + tap[1], 0);
    return taps.map(([s, weight]) => [s, weight / sum]);
  });
}

/// The image at another size.
export function resize(image, channels, rows, cols) {
  if (rows === image.rows && cols === image.cols) return image;
  const across = weights(image.cols, cols), down = weights(image.rows, rows);
  const result = blank(rows, cols, channels);
  for (let row = 0; row < rows; ++row)
    for (let col = 0; col < cols; ++col)
      for (let c = 0; c < channels; ++c) {
        let sum = 0;
        for (const [r, weightRow] of down[row])
          for (const [s, weightCol] of across[col])
            sum += weightRow * weightCol * image.pixels[(r * image.cols + s) * channels + c];
        result.pixels[(row * cols + col) * channels + c] = Math.round(sum);
      }
  return result;
}

/// The image on a black canvas of the format.
export function compose(image, [top, left], {rows, cols, channels}) {
  const canvas = blank(rows, cols, channels);
  for (let row = 0; row < image.rows; ++row)
    for (let i = 0; i < image.cols * channels; ++i)
      canvas.pixels[((top + row) * cols + left) * channels + i] =
          image.pixels[row * image.cols * channels + i];
  return canvas;
}

/// A line of bright ink from one point to another, in pixels; soft at its edge.
export function stroke(image, channels, from, to, radius) {
  const result = {...image, pixels: image.pixels.slice()};
  const [dr, dc] = [to[0] - from[0], to[1] - from[1]], length = dr * dr + dc * dc;
  for (let row = 0; row < image.rows; ++row)
    for (let col = 0; col < image.cols; ++col) {
      const [r, c] = [row + 0.5 - from[0], col + 0.5 - from[1]];
      const along = length > 0 ? Math.min(1, Math.max(0, (r * dr + c * dc) / length)) : 0;
      const distance = Math.hypot(r - along * dr, c - along * dc);
      const ink = Math.round(255 * Math.min(1, Math.max(0, radius + 0.5 - distance)));
      for (let i = 0; i < channels; ++i) {
        const at = (row * image.cols + col) * channels + i;
        result.pixels[at] = Math.max(result.pixels[at], ink);
      }
    }
  return result;
}

/// What is not black on a canvas, with a margin up to `side`: {image, place}; null if all is black.
export function cutOut(canvas, channels, side) {
  let [top, bottom, left, right] = [canvas.rows, -1, canvas.cols, -1];
  canvas.pixels.forEach((value, at) => {
    if (value === 0) return;
    const pixel = Math.floor(at / channels), row = Math.floor(pixel / canvas.cols),
          col = pixel % canvas.cols;
    [top, bottom] = [Math.min(top, row), Math.max(bottom, row)];
    [left, right] = [Math.min(left, col), Math.max(right, col)];
  });
  if (bottom < 0) return null;
  const fit = (first, last, limit) => {
    const size = Math.min(limit, Math.max(side, last - first + 1));
    return [Math.min(limit - size, Math.max(0, Math.round((first + last + 1 - size) / 2))), size];
  };
  const [row, rows] = fit(top, bottom, canvas.rows), [col, cols] = fit(left, right, canvas.cols);
  const image = blank(rows, cols, channels);
  for (let r = 0; r < rows; ++r)
    for (let i = 0; i < cols * channels; ++i)
      image.pixels[r * cols * channels + i] =
          canvas.pixels[((row + r) * canvas.cols + col) * channels + i];
  return {image, place: [row, col]};
}

/// The nearest place at which the image is inside.
export function inside([row, col], image, format) {
  const within = (value, most) => Math.min(most, Math.max(0, Math.round(value)));
  return [within(row, format.rows - image.rows), within(col, format.cols - image.cols)];
}
