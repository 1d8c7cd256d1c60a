import { EvenkeelError } from './errors.ts';

const BYTE_ORDER_MARK = '\uFEFF';
/** Of text that is JSON: its strings, and what opens, closes or parts. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;

/**
 * `JSON.parse` that loses nothing silently: a key that an object has twice, of which the last one would win, and the key
 * `__proto__`, which maps of ours cannot hold, are refused by name. A byte order mark in front is skipped. Throws
 * `invalid_argument`; `name` is what the message calls the text.
 */
export function parseStrictJson(text: string, name: string): unknown {
  const json = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new EvenkeelError('invalid_argument', `${name} is not JSON: ${what}`);
  }
  checkKeys(json, name);
  return value;
}

function checkKeys(json: string, name: string): void {
  /** The keys of each object that is open; `null`: a list. */
  const open: (Set<string> | null)[] = [];
  let isKeyNext = false;
  for (const { 0: token, index } of json.matchAll(TOKENS)) {
    const keys = open.at(-1) ?? null;
    if (token === '{' || token === '[') {
      open.push(token === '{' ? new Set() : null);
      isKeyNext = token === '{';
    } else if (token === '}' || token === ']') open.pop();
    else if (token === ',') isKeyNext = keys !== null;
    else if (isKeyNext && keys !== null) {
      isKeyNext = false;
      const key = token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1);
      const problem =
        key === '__proto__' ? 'which is not allowed' : keys.has(key) ? 'twice: leave one out' : null;
      if (problem !== null) {
        const line = json.slice(0, index).split('\n').length;
        throw new EvenkeelError(
          'invalid_argument',
          `${name}, line ${line}: an object has the key ${token.slice(0, 80)} ${problem}`,
        );
      }
      keys.add(key);
    }
  }
}
