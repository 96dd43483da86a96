// What the page asks of the server. Errors have the server's message.

async function answerOf(response) {
  const answer = await response.json().catch(() => ({error: response.statusText}));
  if (response.ok) return answer;
  const error = new Error(answer.error);
  error.busy = response.status === 503;
  throw error;
}

async function ask(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error('the server does not answer');
  });
  return answerOf(response);
}

export const get = (path) => ask(path, {});
export const post = (path, body) => ask(path, {method: 'POST', body});

/// The body of a request about an image at a place.
export function pictureBody(image, place) {
  return JSON.stringify({image, place});
}

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
