import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { brokerCodec, JSON_SUBPROTOCOL, MSGPACK_SUBPROTOCOL } from '../../src/broker-protocol.ts';
import { checkPlainMsgpack, MAX_MSGPACK_NESTING } from '../../src/plain-msgpack.ts';

const packr = new Packr({ useRecords: false, mapsAsObjects: true });
const text = (value: string): number[] => [0xa0 + value.length, ...Buffer.from(value)];

describe('plain MessagePack', () => {
  test('whatever a program may send passes, however it is written', () => {
    const leaf = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.double(),
      fc.maxSafeInteger(),
      fc.boolean(),
      fc.constant(null),
      fc.uint8Array({ maxLength: 300 }),
    );
    const key = fc.string({ maxLength: 40 }).filter((one) => one !== '__proto__');
    const value = fc.letrec((tie) => ({
      any: fc.oneof({ maxDepth: 5 }, leaf, tie('list'), tie('map')),
      list: fc.array(tie('any'), { maxLength: 40 }),
      map: fc.dictionary(key, tie('any'), { maxKeys: 40 }),
    })).any;
    fc.assert(fc.property(value, (given) => checkPlainMsgpack(packr.pack(given))));
  });

  test('every way to write a length passes, and none of them cut short', () => {
    const inside = [...text('k'), 1];
    const frames = [
      [0xd9, 1, 0x61],
      [0xda, 0, 1, 0x61],
      [0xdb, 0, 0, 0, 1, 0x61],
      [0xc4, 1, 0],
      [0xc5, 0, 1, 0],
      [0xc6, 0, 0, 0, 1, 0],
      [0xdc, 0, 2, ...inside],
      [0xdd, 0, 0, 0, 2, ...inside],
      [0xde, 0, 1, ...inside],
      [0xdf, 0, 0, 0, 1, ...inside],
      [0xca, 0, 0, 0, 0],
      [0xcf, 0, 0, 0, 0, 0, 0, 0, 1],
      [0xd3, 0xff, 0, 0, 0, 0, 0, 0, 1],
      [0xcd, 1, 1],
    ];
    for (const frame of frames) {
      checkPlainMsgpack(Uint8Array.from(frame));
      for (let end = 0; end < frame.length; end += 1) {
        expect(() => checkPlainMsgpack(Uint8Array.from(frame.slice(0, end)))).toThrow(/past its end/);
      }
      expect(() => checkPlainMsgpack(Uint8Array.from([...frame, 1]))).toThrow(/after its end/);
    }
  });

  test('nesting up to the limit passes', () => {
    const nested = (levels: number, code: number): Uint8Array =>
      Uint8Array.from([...Array.from({ length: levels }, () => code), 0xc0]);
    checkPlainMsgpack(nested(MAX_MSGPACK_NESTING, 0x91));
    expect(() => checkPlainMsgpack(nested(MAX_MSGPACK_NESTING + 1, 0x91))).toThrow(/16 levels/);
    expect(() => checkPlainMsgpack(nested(20_000, 0x91))).toThrow(/16 levels/);
    const maps = Array.from({ length: 20_000 }, () => [0x81, ...text('a')]).flat();
    expect(() => checkPlainMsgpack(Uint8Array.from([...maps, 0xc0]))).toThrow(/16 levels/);
  });
});

describe('hazard 38: frames of a broker that lie are refused before anything is made of them', () => {
  const decode = (bytes: readonly number[]) =>
    brokerCodec(MSGPACK_SUBPROTOCOL).decode(Uint8Array.from(bytes));

  test.each([
    ['a list of 2^32 - 1', [0xdd, 0xff, 0xff, 0xff, 0xff], /past its end/],
    ['a map of 2^32 - 1', [0xdf, 0xff, 0xff, 0xff, 0xff], /past its end/],
    ['a string of 2^32 - 1 bytes', [0xdb, 0xff, 0xff, 0xff, 0xff], /past its end/],
    ['bytes of 2^32 - 1', [0xc6, 0xff, 0xff, 0xff, 0xff], /past its end/],
    ['a map with one entry too few', [0x82, ...text('a'), 1, 0xc0], /no string|past its end/],
    ['a number as a key', [0x81, 1, 1], /no string/],
    ['a list as a key', [0x81, 0x91, 1, 1], /no string/],
    ['a date', [0xd6, 0xff, 0, 0, 0, 1], /extension/],
    ['a set', [0xd4, 0x73, 0, 0x90], /extension/],
    ['a regular expression', [0xd4, 0x78, 0, 0x92, ...text('a+'), ...text('g')], /extension/],
    ['a record with code made for it', [0xd4, 0x72, 0x40, 0x91, ...text('a'), 1], /extension/],
    ['a code that means nothing', [0xc1], /means nothing/],
    ['nothing at all', [], /past its end/],
  ])('%s', (_, bytes, message) => {
    expect(() => decode(bytes)).toThrow(message);
  });

  test.each([
    ['a key twice', [0x82, ...text('id'), 1, ...text('id'), 2], /the key "id" twice/],
    [
      'a key twice, its length written in two ways',
      [0x82, ...text('id'), 1, 0xd9, 2, 0x69, 0x64, 2],
      /the key "id" twice/,
    ],
    [
      'a key twice, after a map inside',
      [0x82, ...text('a'), 0x81, ...text('a'), 1, ...text('a'), 2],
      /the key "a" twice/,
    ],
    [
      'a key of more bytes than its text takes',
      [0x82, ...text('id'), 1, 0xa3, 0xc1, 0xa9, 0x64, 2],
      /not UTF-8/,
    ],
    ['a label named __proto__', [0x81, ...text('labels'), 0x81, ...text('__proto__'), 1], /"__proto__"/],
  ])('%s', (_, bytes, message) => {
    expect(() => decode(bytes)).toThrow(message);
  });

  test('the same key in different maps, and as a value, passes', () => {
    const inner = [0x81, ...text('a'), ...text('a')];
    expect(decode([0x82, ...text('a'), ...inner, ...text('b'), 0x92, ...inner, ...inner])).toEqual({
      a: { a: 'a' },
      b: [{ a: 'a' }, { a: 'a' }],
    });
  });

  test.each([
    ['{"id": 1, "type": "heartbeat", "id": 2}', /the key "id" twice/],
    ['{"labels": {"__proto__": "x"}}', /the key "__proto__"/],
  ])('JSON %s', (frame, message) => {
    expect(() => brokerCodec(JSON_SUBPROTOCOL).decode(frame)).toThrow(message);
  });

  test('2^60 is no safe integer after decoding', () => {
    const decoded = decode([0xcf, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    expect(typeof decoded).toBe('number');
    expect(Number.isSafeInteger(decoded)).toBe(false);
  });
});
