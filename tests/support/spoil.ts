import type { Dice } from './dice.ts';

/** MessagePack codes that begin a long length, a large number, a map, an extension or a float. */
const TRAPS = [
  0xc4, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcf, 0xd3, 0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0x81, 0xff,
];

/** A wrong frame made of a right one: cut short, bytes changed, lengths that lie, two frames' parts together. */
export function spoilBytes(dice: Dice, frame: Uint8Array): Uint8Array {
  const spoiled = Uint8Array.from(frame);
  const at = dice.below(spoiled.length);
  switch (dice.below(6)) {
    case 0:
      return spoiled.subarray(0, at);
    case 1:
      spoiled[at] = dice.below(256);
      return spoiled;
    case 2:
      spoiled[at] = dice.pick(TRAPS);
      return spoiled;
    case 3:
      spoiled.fill(0xff, at, at + 1 + dice.below(9));
      return spoiled;
    case 4:
      return Uint8Array.from({ length: 1 + dice.below(200) }, () => dice.below(256));
    default:
      return Uint8Array.from([...spoiled.subarray(0, at), ...frame.subarray(dice.below(frame.length))]);
  }
}

const DEPTH = 20_000;
/** JSON that no field wants: wrong types, numbers past all bounds, names of prototypes, nesting, long texts. */
const JSON_TRAPS = [
  'null',
  'true',
  '-1',
  '0.5',
  '1152921504606846976',
  '9007199254740993',
  '1e308',
  '""',
  '"\\u0000"',
  '"\\ud800"',
  '"1:1"',
  '[]',
  '{}',
  '[[]]',
  '{"__proto__": {"polluted": 1}}',
  '{"constructor": {"prototype": {"polluted": 1}}}',
  '{"toString": 1, "length": 4294967295}',
  `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`,
  `${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`,
  `"${'x'.repeat(70_000)}"`,
  `[${'1,'.repeat(20_000)}1]`,
] as const;

type Message = Readonly<Record<string, unknown>>;

/** JSON text of the message with one value, anywhere in it, put in place of another, taken out or added; or no message at all. */
export function spoilJson(dice: Dice, message: Message): string {
  if (dice.below(40) === 0) return dice.pick(JSON_TRAPS);
  const copy = structuredClone(message) as Record<string, unknown>;
  let inside = copy;
  for (;;) {
    const key = dice.pick(Object.keys(inside));
    const value = inside[key];
    const nested = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
    if (nested && dice.below(3) > 0) {
      inside = value as Record<string, unknown>;
      continue;
    }
    const at = dice.below(8) === 0 ? '__proto__' : key;
    if (dice.below(6) === 0) delete inside[key];
    // A plain assignment to __proto__ would set the prototype instead.
    else
      Object.defineProperty(inside, at, {
        value: PLACE,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    return JSON.stringify(copy).replace(`"${PLACE}"`, () => dice.pick(JSON_TRAPS));
  }
}

const PLACE = '@place@';
