// node bpe_cases.js PACKAGE SEED COUNT: prints JSON for gpt2_test.cpp with texts, their tokens
// according to gpt-3-encoder (unpacked at PACKAGE), and this node's Unicode character classes.
// gpt2_cases.json was generated with seed 1 and count 320.
const [folder, seed, count] = process.argv.slice(2);
const { encode } = require(require('path').resolve(folder, 'Encoder.js'));

const kUnicode = 17; // version that words.cpp implements
const unicode = parseFloat(process.versions.unicode);

// ------------------------------------------------------------------------------ random texts

let state = Number(seed) >>> 0;
function below(limit) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}
const pick = (list) => list[below(list.length)];
const some = (most, make) => Array.from({ length: 1 + below(most) }, make).join('');
const between = (first, last) => String.fromCodePoint(first + below(last - first + 1));

// A random character. If node's Unicode is newer than ours, only from the first blocks; if it is
// older, only assigned characters.
function any() {
  const limits = unicode > kUnicode ? [0x530] : [0x10000, 0x34000, 0x110000];
  for (;;) {
    const code = below(pick(limits));
    const text = String.fromCodePoint(code);
    const known = unicode >= kUnicode || !/\p{Cn}/u.test(text);
    if (known && (code < 0xd800 || code > 0xdfff)) return text;
  }
}

const words = ('the of and Translution attention offset GPT iPhone McDonald HTTPServer naïve ' +
  'Straße été Łódź ὀδυσσεύς война שלום سلام नमस्ते สวัสดี 你好世界 こんにちは 안녕하세요 ' +
  'constructor __proto__ toString hasOwnProperty valueOf undefined null length').split(' ');
const contractions = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", '’s', "'", "''",
  "'x", "s'"];
const spaces = [' ', ' ', ' ', '\n', '\t', '\r\n', '\r', '\v', '\f', '\u00a0', '\u1680', '\u2003',
  '\u2028', '\u2029', '\u202f', '\u205f', '\u3000', '\ufeff', '\u0085', '\u180e', '\u200b',
  '\u2060'];
const digits = [0x30, 0x660, 0x6f0, 0x966, 0xe50, 0xff10, 0x1d7ce, 0x1fbf0];
const numbers = [...'½²Ⅷ①〇㊿৴፼𐄇'];
const emoji = ['😀', '👍🏽', '👩‍👩‍👧‍👦', '🇩🇪', '❤️', '☺', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '1️⃣'];
const marks = ['ा', '्', '\u0301', '\u0308', '\u20dd', '\ufe0f', '\u05b0', '\u064b'];
const signs = [...'.,;:!?-_()[]{}<>|/\\@#$%^&*+=~`"\'', '","', "','", '],[', '...', '—', '“',
  '€', '«', '。'];

const kinds = [
  () => pick(words),
  () => some(8, () => between(0x61, 0x7a)),
  () => pick(words) + pick(contractions),
  () => pick(contractions),
  () => some(6, () => pick(spaces)),
  () => pick(spaces).repeat(1 + below(40)),
  () => { const zero = pick(digits); return some(6, () => between(zero, zero + 9)); },
  () => pick(numbers),
  () => pick(emoji),
  () => between(0x61, 0x7a) + some(4, () => pick(marks)),
  () => some(5, () => pick(signs)),
  () => some(4, () => between(0, 0x1f)),
  () => between(0x7f, 0xff),
  () => some(4, any),
  () => some(5, () => between(0x4e00, 0x9fff)),
  () => ' ',
  () => '\n',
  () => pick(['<|endoftext|>', '\ufffd', '\uffff', '\u{10ffff}', '\0', 'Ġthe', 'ÃĥÃĤ']),
];
const parts = [() => pick(words), () => some(5, any), () => pick(signs), () => pick(spaces),
  () => between(0x41, 0x7a)];
const long = () => pick(parts)().repeat(1 + below(60));
const random = () => (below(20) === 0 ? long() : some(9, () => pick(kinds)()));

const fixed = ['', ' ', '  ', 'a', ' a', '  a', 'a ', 'a  ', '\n', '\n\n', 'a\n\nb', 'a \n b', ' \n',
  "I'll", "we've can't I'm she'd they're it's IT'S", "'sa 't", ' 12 345', '3.14', 'x=1;', 'é',
  'e\u0301', '\u0085a', 'a\u180e b', '\ufeffa', ' \ufeff', '\u3000\u3000あ', '\0\0', '\r\n\r\n',
  '<|endoftext|>', '","', "','", '],[', '","","', "',','", '],[],[', '.","', ' ,"', ' toString',
  ...words, ...emoji, ...signs, ...spaces, ...numbers];

// -------------------------------------------------------------------- classes of characters

// "0O 9S eO …": the first character of each range and its class: L letter, N number, S space, O
// other. X marks characters that are not compared: surrogates, and those that are unassigned in
// node's Unicode if its version differs from ours.
function class_of(code) {
  if (code >= 0xd800 && code <= 0xdfff) return 'X';
  const text = String.fromCodePoint(code);
  if (unicode !== kUnicode && /\p{Cn}/u.test(text)) return 'X';
  return /\p{L}/u.test(text) ? 'L' : /\p{N}/u.test(text) ? 'N' : /\s/u.test(text) ? 'S' : 'O';
}
function classes() {
  const ranges = [];
  for (let code = 0, last = ''; code < 0x110000; ++code) {
    const kind = class_of(code);
    if (kind !== last) ranges.push(code.toString(16) + kind);
    last = kind;
  }
  return ranges.join(' ');
}

const texts = fixed.concat(Array.from({ length: Number(count) }, random));
const cases = texts.map((text) => JSON.stringify([text, encode(text)]));
console.log(`{"seed": ${Number(seed)}, "unicode": ${unicode},\n"classes": "${classes()}",\n` +
  `"cases": [\n${cases.join(',\n')}\n]}`);
