import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EvenkeelError } from '../../src/errors.ts';
import { parseStrictJson } from '../../src/strict-json.ts';

test('reads whatever JSON.stringify writes, a byte order mark or not', () => {
  fc.assert(
    fc.property(fc.json({ noUnicodeString: false }), fc.boolean(), (json, marked) => {
      fc.pre(!json.includes('__proto__'));
      expect(parseStrictJson(`${marked ? '\uFEFF' : ''}${json}`, 'it')).toEqual(JSON.parse(json));
    }),
  );
});

test.each([
  ['{"a": 1, "a": 2}', 'the file, line 1: an object has the key "a" twice: leave one out'],
  ['{"a": [{"x": {"b": 1,\n"c": "{,", "b": 2}}]}', 'line 2: an object has the key "b" twice'],
  ['{"a": 1, "\\u0061": 2}', 'twice'],
  ['{"labels": {"__proto__": "x"}}', 'the key "__proto__" which is not allowed'],
  ['{"a": ', 'the file is not JSON'],
])('refuses %s', (text, message) => {
  expect(() => parseStrictJson(text, 'the file')).toThrow(EvenkeelError);
  expect(() => parseStrictJson(text, 'the file')).toThrow(message);
});

test('takes the same key in different objects, and as a value', () => {
  const text = '{"a": {"a": "a"}, "b": [{"a": 1}, {"a": 2}, "a", "a"]}';
  expect(parseStrictJson(text, 'it')).toEqual({ a: { a: 'a' }, b: [{ a: 1 }, { a: 2 }, 'a', 'a'] });
});
