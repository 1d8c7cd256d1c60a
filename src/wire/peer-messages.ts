import type { Configuration, Entry, EntryKind, MemberId, Message, Snapshot } from '../../raft/index.ts';
import { malformed, type MsgpackReader } from './msgpack-reader.ts';
import type { MsgpackWriter } from './msgpack-writer.ts';

/** Bounds of what a peer may say. */
export const MAX_MEMBER_ID_BYTES = 128;
export const MAX_ENTRY_BYTES = 4 * 1024 * 1024;
export const MAX_ENTRIES_PER_APPEND = 16_384;
export const MAX_SNAPSHOT_BYTES = 256 * 1024 * 1024;
/** Members of one list of a configuration. */
export const MAX_MEMBERS = 128;

/** On the wire a message is an array that begins with its type's place in this list. New ones go to the end. */
const TYPES: readonly Message['type'][] = [
  'preVote',
  'preVoteReply',
  'vote',
  'voteReply',
  'append',
  'appendReply',
  'heartbeat',
  'heartbeatReply',
  'readIndex',
  'readIndexReply',
  'snapshot',
  'timeoutNow',
];
const TYPE_CODES = new Map(TYPES.map((type, code) => [type, code]));
/** Values of each type, past its code and term. */
const FIELDS: Readonly<Record<Message['type'], number>> = {
  preVote: 2,
  preVoteReply: 1,
  vote: 3,
  voteReply: 1,
  append: 4,
  appendReply: 5,
  heartbeat: 2,
  heartbeatReply: 1,
  readIndex: 1,
  readIndexReply: 2,
  snapshot: 4,
  timeoutNow: 2,
};
const MOST_FIELDS = Math.max(...Object.values(FIELDS));
const KINDS: readonly EntryKind[] = ['noop', 'command', 'config'];
/** Values of one entry, laid out flat: its index follows from its place. */
const ENTRY_FIELDS = 3;

/** Writes one message without its `from` and `to`, which the frame says once. */
export function writeMessage(writer: MsgpackWriter, message: Message): void {
  switch (message.type) {
    case 'preVote':
      head(writer, message);
      writer.uint(message.lastIndex);
      writer.uint(message.lastTerm);
      return;
    case 'vote':
      head(writer, message);
      writer.uint(message.lastIndex);
      writer.uint(message.lastTerm);
      writer.boolean(message.transfer);
      return;
    case 'preVoteReply':
    case 'voteReply':
      head(writer, message);
      writer.boolean(message.granted);
      return;
    case 'append':
      head(writer, message);
      writer.uint(message.prevIndex);
      writer.uint(message.prevTerm);
      writer.uint(message.commit);
      writeEntries(writer, message.entries, message.prevIndex);
      return;
    case 'appendReply':
      head(writer, message);
      writer.boolean(message.success);
      writer.uint(message.index);
      writer.uint(message.hintIndex);
      writer.uint(message.hintTerm);
      writer.boolean(message.lost);
      return;
    case 'heartbeat':
      head(writer, message);
      writer.uint(message.commit);
      writer.uint(message.round);
      return;
    case 'heartbeatReply':
      head(writer, message);
      writer.uint(message.round);
      return;
    case 'readIndex':
      head(writer, message);
      writer.uint(message.token);
      return;
    case 'readIndexReply':
      head(writer, message);
      writer.uint(message.token);
      if (message.index === null) writer.nil();
      else writer.uint(message.index);
      return;
    case 'snapshot':
      head(writer, message);
      writeSnapshot(writer, message.snapshot);
      return;
    case 'timeoutNow':
      head(writer, message);
      writer.uint(message.lastIndex);
      writer.uint(message.round);
      return;
  }
}

/** Reads one message; rejects whatever `writeMessage` would not write. */
export function readMessage(reader: MsgpackReader, from: MemberId, to: MemberId): Message {
  const count = reader.array(2 + MOST_FIELDS);
  if (count < 2) throw malformed('a message without type or term');
  const type = TYPES[reader.uint()];
  if (type === undefined) throw malformed('a message of an unknown type');
  if (count !== 2 + FIELDS[type]) throw malformed(`a ${type} of ${count} values`);
  return readFields(reader, type, { from, to, term: reader.uint() });
}

function readFields(
  reader: MsgpackReader,
  type: Message['type'],
  envelope: { from: MemberId; to: MemberId; term: number },
): Message {
  switch (type) {
    case 'preVote':
      return { ...envelope, type, lastIndex: reader.uint(), lastTerm: reader.uint() };
    case 'vote':
      return {
        ...envelope,
        type,
        lastIndex: reader.uint(),
        lastTerm: reader.uint(),
        transfer: reader.boolean(),
      };
    case 'preVoteReply':
    case 'voteReply':
      return { ...envelope, type, granted: reader.boolean() };
    case 'append': {
      const prevIndex = reader.uint();
      const prevTerm = reader.uint();
      const commit = reader.uint();
      return { ...envelope, type, prevIndex, prevTerm, commit, entries: readEntries(reader, prevIndex) };
    }
    case 'appendReply':
      return {
        ...envelope,
        type,
        success: reader.boolean(),
        index: reader.uint(),
        hintIndex: reader.uint(),
        hintTerm: reader.uint(),
        lost: reader.boolean(),
      };
    case 'heartbeat':
      return { ...envelope, type, commit: reader.uint(), round: reader.uint() };
    case 'heartbeatReply':
      return { ...envelope, type, round: reader.uint() };
    case 'readIndex':
      return { ...envelope, type, token: reader.uint() };
    case 'readIndexReply':
      return { ...envelope, type, token: reader.uint(), index: reader.isNil() ? null : reader.uint() };
    case 'snapshot':
      return { ...envelope, type, snapshot: readSnapshot(reader) };
    case 'timeoutNow':
      return { ...envelope, type, lastIndex: reader.uint(), round: reader.uint() };
  }
}

function head(writer: MsgpackWriter, message: Message): void {
  writer.array(2 + FIELDS[message.type]);
  writer.uint(TYPE_CODES.get(message.type) ?? TYPES.length);
  writer.uint(message.term);
}

function writeEntries(writer: MsgpackWriter, entries: readonly Entry[], prevIndex: number): void {
  writer.array(entries.length * ENTRY_FIELDS);
  let index = prevIndex;
  for (const entry of entries) {
    index += 1;
    if (entry.index !== index) throw new Error(`append after ${prevIndex} holds ${entry.index} at ${index}`);
    writer.uint(entry.term);
    writer.uint(KINDS.indexOf(entry.kind));
    writer.bytes(entry.data);
  }
}

function readEntries(reader: MsgpackReader, prevIndex: number): Entry[] {
  const values = reader.array(MAX_ENTRIES_PER_APPEND * ENTRY_FIELDS);
  const count = values / ENTRY_FIELDS;
  if (!Number.isInteger(count) || !Number.isSafeInteger(prevIndex + count)) {
    throw malformed('entries that are not whole');
  }
  const entries: Entry[] = [];
  for (let at = 1; at <= count; at += 1) {
    const term = reader.uint();
    const kind = KINDS[reader.uint()];
    if (kind === undefined) throw malformed('an entry of an unknown kind');
    entries.push({ index: prevIndex + at, term, kind, data: reader.bytes(MAX_ENTRY_BYTES) });
  }
  return entries;
}

function writeSnapshot(writer: MsgpackWriter, snapshot: Snapshot): void {
  const { index, term, configuration } = snapshot.meta;
  writer.uint(index);
  writer.uint(term);
  writer.array(LISTS.length);
  for (const list of LISTS) {
    writer.array(configuration[list].length);
    for (const member of configuration[list]) writer.string(member);
  }
  writer.bytes(snapshot.data);
}

function readSnapshot(reader: MsgpackReader): Snapshot {
  const index = reader.uint();
  const term = reader.uint();
  reader.tuple(LISTS.length);
  const configuration: Configuration = {
    voters: readMembers(reader),
    outgoing: readMembers(reader),
    learners: readMembers(reader),
    learnersNext: readMembers(reader),
  };
  return { meta: { index, term, configuration }, data: reader.bytes(MAX_SNAPSHOT_BYTES) };
}

/** In the order they are read. */
const LISTS = ['voters', 'outgoing', 'learners', 'learnersNext'] as const;

function readMembers(reader: MsgpackReader): MemberId[] {
  const members: MemberId[] = [];
  for (let left = reader.array(MAX_MEMBERS); left > 0; left -= 1) {
    members.push(reader.string(MAX_MEMBER_ID_BYTES));
  }
  return members;
}
