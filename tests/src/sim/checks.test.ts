import { beforeEach, describe, expect, it } from 'vitest';
import type { Entry, HardState, Message, StorageWrite } from '../../../raft/index.ts';
import { RaftChecks } from '../../../src/sim/checks.ts';

const entry = (index: number, term: number, text = ''): Entry => ({
  index,
  term,
  kind: 'command',
  data: new TextEncoder().encode(text),
});
const write = (entries: readonly Entry[], hardState: HardState | null = null): StorageWrite => ({
  hardState,
  entries,
  snapshot: null,
  compactTo: 0,
});
const vote = (term: number, votedFor: string | null): StorageWrite =>
  write([], { term, votedFor, commit: 0 });

describe('RaftChecks', () => {
  let checks: RaftChecks;
  beforeEach(() => {
    checks = new RaftChecks(['n1', 'n2', 'n3']);
  });

  function store(id: string, batch: StorageWrite): void {
    checks.issued(id, batch);
    checks.durable(id, batch);
  }
  function send(id: string, message: Record<string, unknown>): void {
    checks.sending(id, [{ from: id, ...message } as unknown as Message]);
  }
  /** Gives it the votes of a quorum. */
  function elect(id: string, term: number): void {
    const other = id === 'n2' ? 'n3' : 'n2';
    for (const voter of [id, other]) store(voter, vote(term, id));
  }
  const heartbeat = { type: 'heartbeat', to: 'n3', commit: 0, round: 1 };

  it('takes an ordinary election and commit', () => {
    for (const id of ['n1', 'n2']) store(id, vote(1, 'n1'));
    send('n2', { type: 'voteReply', to: 'n1', term: 1, granted: true });
    send('n1', { ...heartbeat, term: 1 });
    for (const id of ['n1', 'n2']) store(id, write([entry(1, 1), entry(2, 1, 'x')]));
    send('n2', { type: 'appendReply', to: 'n1', term: 1, success: true, index: 2 });
    checks.applied('n1', [entry(1, 1), entry(2, 1, 'x')], 'h2');
    checks.applied('n2', [entry(1, 1), entry(2, 1, 'x')], 'h2');
    expect(checks.committedIndex).toBe(2);
  });

  it('two leaders of one term', () => {
    elect('n1', 1);
    send('n1', { ...heartbeat, term: 1 });
    expect(() => send('n2', { ...heartbeat, term: 1 })).toThrow('n1 and n2 both lead term 1');
  });

  it('a leader that fewer than a quorum voted for in its term', () => {
    elect('n1', 1);
    store('n1', vote(2, 'n1'));
    store('n3', vote(2, 'n3'));
    const beat = { ...heartbeat, term: 2 };
    expect(() => send('n1', beat)).toThrow('n1 leads term 2 by the votes of n1, it needs 2');
    store('n2', vote(2, 'n1'));
    send('n1', beat);
  });

  it('a vote given before it is durable, and a second vote in a term', () => {
    checks.issued('n2', vote(1, 'n1'));
    const reply = { type: 'voteReply', to: 'n1', term: 1, granted: true };
    expect(() => send('n2', reply)).toThrow('has not made it durable');
    checks.durable('n2', vote(1, 'n1'));
    send('n2', reply);
    expect(() => store('n2', vote(1, 'n3'))).toThrow('votes for n1 and n3 in term 1');
  });

  it('a term that goes back, in a write and over a restart; a vote forgotten', () => {
    store('n1', vote(3, 'n2'));
    expect(() => store('n1', vote(2, null))).toThrow('wrote term 2 after 3');
    const back = (hardState: HardState) => () =>
      checks.loaded('n1', { hardState, snapshot: null, entries: [] });
    expect(back({ term: 2, votedFor: null, commit: 0 })).toThrow('came back in term 2');
    expect(back({ term: 3, votedFor: null, commit: 0 })).toThrow('forgotten its vote');
    expect(back({ term: 3, votedFor: 'n2', commit: 0 })).not.toThrow();
  });

  it('entries acknowledged before they are durable, or lost over a restart', () => {
    store('n2', vote(1, null));
    checks.issued('n2', write([entry(1, 1)]));
    const ack = { type: 'appendReply', to: 'n1', term: 1, success: true, index: 1 };
    expect(() => send('n2', ack)).toThrow('has made 0 durable');
    checks.durable('n2', write([entry(1, 1)]));
    send('n2', ack);
    const hardState = { term: 1, votedFor: null, commit: 0 };
    expect(() => checks.loaded('n2', { hardState, snapshot: null, entries: [] })).toThrow('a log up to 0');
    expect(() =>
      checks.loaded('n2', { hardState, snapshot: null, entries: [entry(1, 1, 'rotten')] }),
    ).toThrow('another payload');
  });

  it('an acknowledgement of what the leader does not have', () => {
    elect('n1', 2);
    store('n1', write([entry(1, 1), entry(2, 2)]));
    send('n1', { ...heartbeat, term: 2 });
    store('n2', write([entry(1, 1), entry(2, 1)]));
    const ack = (index: number) => ({ type: 'appendReply', to: 'n1', term: 2, success: true, index });
    send('n2', ack(1));
    expect(() => send('n2', ack(2))).toThrow(
      'acknowledges (2, t1) to the leader of term 2, which has (2, t2)',
    );
    // A leader that has moved on may have another log by now.
    checks.issued('n1', vote(3, null));
    send('n2', ack(2));
  });

  it('an entry of an earlier term committed by counting', () => {
    elect('n1', 2);
    store('n1', write([entry(1, 1), entry(2, 1), entry(3, 2)]));
    const append = (commit: number) => ({
      type: 'append',
      to: 'n2',
      term: 2,
      prevIndex: 3,
      prevTerm: 2,
      commit,
    });
    expect(() => send('n1', { ...append(2), entries: [] })).toThrow(
      'n1 in term 2 commits (2, t1) by counting',
    );
    const right = new RaftChecks(['n1', 'n2', 'n3']);
    for (const id of ['n1', 'n2']) right.durable(id, vote(2, 'n1'));
    right.issued('n1', write([entry(1, 1), entry(2, 1), entry(3, 2)]));
    right.sending('n1', [{ from: 'n1', ...append(3), entries: [] } as unknown as Message]);
  });

  it('another payload at the same index and term, or another entry before it', () => {
    store('n1', write([entry(1, 1), entry(2, 2, 'x')]));
    store('n2', write([entry(1, 1)]));
    expect(() => checks.issued('n2', write([entry(2, 2, 'y')]))).toThrow('another payload at (2, t2)');
    const other = new RaftChecks(['n1', 'n2', 'n3']);
    other.issued('n1', write([entry(1, 1), entry(2, 2, 'x')]));
    other.issued('n2', write([entry(1, 2)]));
    expect(() => other.issued('n2', write([entry(2, 2, 'x')]))).toThrow('follows t2 here and t1 elsewhere');
  });

  it('an entry applied that a quorum does not hold', () => {
    store('n1', write([entry(1, 1)]));
    checks.issued('n2', write([entry(1, 1)]));
    expect(() => checks.applied('n1', [entry(1, 1)], 'h')).toThrow('durable on 1 of the 2 it needs');
  });

  it('members that apply different entries, skip some, or reach different states', () => {
    for (const id of ['n1', 'n2', 'n3']) store(id, write([entry(1, 1), entry(2, 1)]));
    checks.applied('n1', [entry(1, 1), entry(2, 1)], 'h2');
    expect(() => checks.applied('n2', [entry(2, 1)], 'h2')).toThrow('n2 applies 2 after 0');
    expect(() => checks.applied('n2', [entry(1, 2)], 'h1')).toThrow('where (1, t1) was committed');
    checks.applied('n3', [entry(1, 1)], 'h1');
    expect(() => checks.applied('n3', [entry(2, 1)], 'other')).toThrow('n3 has state other at 2');
  });

  it('a leader without what an earlier term committed', () => {
    for (const id of ['n1', 'n2']) {
      store(id, vote(1, 'n1'));
      store(id, write([entry(1, 1)]));
    }
    checks.applied('n1', [entry(1, 1)], 'h');
    elect('n3', 2);
    expect(() => send('n3', { ...heartbeat, to: 'n1', term: 2 })).toThrow(
      'leads term 2 without the committed (1, t1)',
    );
  });

  it('a snapshot that goes back or past all that is committed', () => {
    for (const id of ['n1', 'n2']) store(id, write([entry(1, 1), entry(2, 1)]));
    checks.applied('n1', [entry(1, 1), entry(2, 1)], 'h2');
    expect(() => checks.restored('n1', 1, 'h1')).toThrow('goes back from 2');
    expect(() => checks.restored('n2', 3, 'h3')).toThrow('past all that was committed');
    checks.restored('n2', 2, 'h2');
    expect(checks.appliedIndex('n2')).toBe(2);
  });

  it('keeps what a restart and a truncation leave of a log', () => {
    store('n1', write([entry(1, 1), entry(2, 1), entry(3, 1)]));
    store('n1', write([entry(2, 2)]));
    const hardState = { term: 0, votedFor: null, commit: 0 };
    checks.loaded('n1', { hardState, snapshot: null, entries: [entry(1, 1), entry(2, 2)] });
    store('n2', write([entry(1, 1), entry(2, 2)]));
    checks.applied('n1', [entry(1, 1), entry(2, 2)], 'h2');
    expect(checks.committedIndex).toBe(2);
  });
});
