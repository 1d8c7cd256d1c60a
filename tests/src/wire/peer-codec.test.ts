import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Entry, Message } from '../../../raft/index.ts';
import {
  decodePeerFrame,
  encodeMessages,
  encodePeerFrame,
  type MessagesHeader,
  type PeerFrame,
} from '../../../src/wire/peer-codec.ts';
import { unpack } from 'msgpackr';

const HEADER: MessagesHeader = {
  clusterId: 'demo',
  from: 'n1',
  to: 'n2',
  fromDirectory: 'd1',
  toDirectory: 'd2',
  bootId: '7-ab',
};
const SAFE = Number.MAX_SAFE_INTEGER;

const envelope = { from: fc.constant('n1'), to: fc.constant('n2'), term: fc.maxSafeNat() };
const members = fc.array(fc.string({ maxLength: 20 }), { maxLength: 5 });
const bytes = fc.uint8Array({ maxLength: 400 });
const append = fc
  .record({
    ...envelope,
    prevIndex: fc.nat(2 ** 40),
    prevTerm: fc.maxSafeNat(),
    commit: fc.maxSafeNat(),
    parts: fc.array(
      fc.record({ term: fc.maxSafeNat(), kind: fc.constantFrom('noop', 'command', 'config'), data: bytes }),
    ),
  })
  .map(({ parts, ...rest }): Message => {
    const entries: Entry[] = parts.map((part, at) => ({ index: rest.prevIndex + 1 + at, ...part }));
    return { ...rest, type: 'append', entries };
  });

const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({
    ...envelope,
    type: fc.constant('preVote'),
    lastIndex: fc.maxSafeNat(),
    lastTerm: fc.maxSafeNat(),
  }),
  fc.record({ ...envelope, type: fc.constant('preVoteReply'), granted: fc.boolean() }),
  fc.record({
    ...envelope,
    type: fc.constant('vote'),
    lastIndex: fc.maxSafeNat(),
    lastTerm: fc.maxSafeNat(),
    transfer: fc.boolean(),
  }),
  fc.record({ ...envelope, type: fc.constant('voteReply'), granted: fc.boolean() }),
  append,
  fc.record({
    ...envelope,
    type: fc.constant('appendReply'),
    success: fc.boolean(),
    index: fc.maxSafeNat(),
    hintIndex: fc.maxSafeNat(),
    hintTerm: fc.maxSafeNat(),
    lost: fc.boolean(),
  }),
  fc.record({ ...envelope, type: fc.constant('heartbeat'), commit: fc.maxSafeNat(), round: fc.maxSafeNat() }),
  fc.record({ ...envelope, type: fc.constant('heartbeatReply'), round: fc.maxSafeNat() }),
  fc.record({ ...envelope, type: fc.constant('readIndex'), token: fc.maxSafeNat() }),
  fc.record({
    ...envelope,
    type: fc.constant('readIndexReply'),
    token: fc.maxSafeNat(),
    index: fc.option(fc.maxSafeNat()),
  }),
  fc.record({
    ...envelope,
    type: fc.constant('snapshot'),
    snapshot: fc.record({
      meta: fc.record({
        index: fc.maxSafeNat(),
        term: fc.maxSafeNat(),
        configuration: fc.record({
          voters: members,
          outgoing: members,
          learners: members,
          learnersNext: members,
        }),
      }),
      data: bytes,
    }),
  }),
  fc.record({
    ...envelope,
    type: fc.constant('timeoutNow'),
    lastIndex: fc.maxSafeNat(),
    round: fc.maxSafeNat(),
  }),
);

const text = fc.string({ maxLength: 30 });
const identity = {
  clusterId: text,
  memberId: text,
  directoryId: text,
  bootId: text,
  bootCount: fc.maxSafeNat(),
  protocol: fc.nat(300),
};
const otherFrame: fc.Arbitrary<Exclude<PeerFrame, { kind: 'messages' }>> = fc.oneof(
  fc.record({
    ...identity,
    kind: fc.constant('hello'),
    to: text,
    lane: fc.constantFrom('control', 'log', 'calls'),
  }),
  fc.record({ ...identity, kind: fc.constant('welcome') }),
  fc.record({ kind: fc.constant('refused'), code: text, message: text }),
  fc.record({
    kind: fc.constant('request'),
    id: fc.maxSafeNat(),
    method: text,
    deadlineMs: fc.maxSafeNat(),
    params: bytes,
  }),
  fc.record({ kind: fc.constant('answer'), id: fc.maxSafeNat(), result: bytes }),
  fc.record({ kind: fc.constant('failure'), id: fc.maxSafeNat(), code: text, message: text, data: text }),
);

test('every message comes back as it was, in order, over as many frames as it takes', () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 20 }), (messages) => {
      const frames = encodeMessages(HEADER, messages).map(decodePeerFrame);
      const all = frames.flatMap((frame) => (frame.kind === 'messages' ? frame.messages : []));
      expect(all).toEqual(messages);
      for (const frame of frames) expect(frame).toMatchObject({ kind: 'messages', ...HEADER });
    }),
  );
});

test('every other frame comes back as it was', () => {
  fc.assert(
    fc.property(otherFrame, (frame) => {
      expect(decodePeerFrame(encodePeerFrame(frame))).toEqual(frame);
    }),
  );
});

test('frames are MessagePack that any reader reads', () => {
  fc.assert(
    fc.property(message, (each) => {
      const [frame = new Uint8Array()] = encodeMessages(HEADER, [each]);
      const [code, cluster, from, to] = unpack(frame) as unknown[];
      expect([code, cluster, from, to]).toEqual([4, 'demo', 'n1', 'n2']);
    }),
  );
});

test('many or large messages are cut into frames of about a MiB', () => {
  const data = new Uint8Array(300_000);
  const large: Message[] = Array.from({ length: 12 }, (_, at) => ({
    type: 'append',
    from: 'n1',
    to: 'n2',
    term: 1,
    prevIndex: at,
    prevTerm: 1,
    commit: 0,
    entries: [{ index: at + 1, term: 1, kind: 'command', data }],
  }));
  const frames = encodeMessages(HEADER, large);
  expect(frames.map((frame) => Math.ceil(frame.byteLength / 300_100))).toEqual([4, 4, 4]);
  const many: Message[] = Array.from({ length: 10_000 }, (_, round) => ({
    type: 'heartbeatReply',
    from: 'n1',
    to: 'n2',
    term: 1,
    round,
  }));
  expect(encodeMessages(HEADER, many)).toHaveLength(3);
});

const beat = (round: number): Message => ({ type: 'heartbeatReply', from: 'n1', to: 'n2', term: 1, round });

test('what the wire cannot say is an error of ours', () => {
  for (const round of [-1, 0.5, SAFE + 1, Number.NaN]) {
    expect(() => encodeMessages(HEADER, [beat(round)])).toThrow(/no number for the wire/);
  }
  const gap: Message = {
    type: 'append',
    from: 'n1',
    to: 'n2',
    term: 1,
    prevIndex: 3,
    prevTerm: 1,
    commit: 0,
    entries: [{ index: 5, term: 1, kind: 'noop', data: new Uint8Array() }],
  };
  expect(() => encodeMessages(HEADER, [gap])).toThrow(/holds 5 at 4/);
});

/** The frame of one message, its header and then these bytes in place of the messages. */
const withMessages = (...messages: number[]): Uint8Array => {
  const [frame = new Uint8Array()] = encodeMessages(HEADER, [
    { type: 'timeoutNow', from: 'n1', to: 'n2', term: 1, lastIndex: 2, round: 3 },
  ]);
  // dd 00000001 94 0b 01 02 03
  return Uint8Array.from([...frame.subarray(0, -10), ...messages]);
};
const id = [0xa2, 0x64, 0x31];
const appendOf = (...entries: number[]) => [0x91, 0x96, 4, 1, 3, 1, 0, ...entries];

describe('hazard 38: a frame that lies is a protocol_error', () => {
  test('the frame they are made from is right', () => {
    expect(decodePeerFrame(withMessages(0x91, 0x94, 11, 1, 2, 3))).toMatchObject({
      messages: [{ type: 'timeoutNow', lastIndex: 2, round: 3 }],
    });
    expect(decodePeerFrame(withMessages(...appendOf(0x93, 1, 1, 0xc4, 1, 7)))).toMatchObject({
      messages: [{ type: 'append', entries: [{ index: 4, data: Uint8Array.of(7) }] }],
    });
  });

  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array()],
    ['an empty array', Uint8Array.of(0x90)],
    ['a map with __proto__', Uint8Array.from([0x81, 0xa9, ...Buffer.from('__proto__'), 0x80])],
    ['a kind that is none', Uint8Array.of(0x91, 99)],
    ['20,000 arrays in each other', new Uint8Array(20_000).fill(0x91)],
    ['20,000 arrays where messages are due', withMessages(...Array.from({ length: 20_000 }, () => 0x91))],
    ['a claim of 2^32 - 1 messages', withMessages(0xdd, 0xff, 0xff, 0xff, 0xff)],
    ['a claim of 4,096 messages with none there', withMessages(0xdc, 0x10, 0x00)],
    ['a claim of 2^32 - 1 entries', withMessages(...appendOf(0xdd, 0xff, 0xff, 0xff, 0xff))],
    ['a claim of 4 GiB of data', withMessages(...appendOf(0x93, 1, 1, 0xc6, 0xff, 0xff, 0xff, 0xff))],
    ['a third of an entry', withMessages(...appendOf(0x91, 1))],
    ['an entry of an unknown kind', withMessages(...appendOf(0x93, 1, 3, 0xc4, 0))],
    ['entry data as text', withMessages(...appendOf(0x93, 1, 1, 0xa1, 7))],
    ['a term of 2^60', withMessages(0x91, 0x92, 11, 0xcf, 0x10, 0, 0, 0, 0, 0, 0, 0)],
    ['a negative term', withMessages(0x91, 0x92, 11, 0xff)],
    ['a term that is a float', withMessages(0x91, 0x92, 11, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0)],
    ['a term that is text', withMessages(0x91, 0x92, 11, ...id)],
    ['a message of an unknown type', withMessages(0x91, 0x92, 12, 1)],
    ['a message of too few values', withMessages(0x91, 0x92, 6, 1)],
    ['a message of too many values', withMessages(0x91, 0x93, 11, 1, 1)],
    ['a number where a boolean is due', withMessages(0x91, 0x93, 3, 1, 1)],
    ['bytes after the end', withMessages(0x91, 0x92, 11, 1, 0)],
    ['a name that is not UTF-8', Uint8Array.of(0x93, 3, 0xa2, 0xc3, 0x28, 0xa0)],
    ['a name of 5,000 bytes', Uint8Array.from([0x93, 3, 0xda, 0x13, 0x88, ...new Uint8Array(5_000), 0xa0])],
    ['an extension', Uint8Array.of(0xc7, 1, 1, 0)],
  ])('%s', (_, frame) => {
    expect(() => decodePeerFrame(frame)).toThrow(expect.objectContaining({ code: 'protocol_error' }));
  });

  test('indexes past the safe integers', () => {
    const most = [0xcf, 0x00, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    const frame = withMessages(0x91, 0x96, 4, 1, ...most, 1, 0, 0x93, 1, 1, 0xc4, 0);
    expect(() => decodePeerFrame(frame)).toThrow(/entries that are not whole/);
  });

  test('cut anywhere', () => {
    fc.assert(
      fc.property(message, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (each, part) => {
        const [frame = new Uint8Array()] = encodeMessages(HEADER, [each]);
        const cut = frame.subarray(0, Math.floor(part * frame.byteLength));
        expect(() => decodePeerFrame(cut)).toThrow(expect.objectContaining({ code: 'protocol_error' }));
      }),
    );
  });
});
