import { applyAll } from '../../support/apply-all.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Command, CommandResult } from '../../../src/command/index.ts';
import { MAX_SESSIONS, SESSION_WINDOW } from '../../../src/state/index.ts';
import { Machine } from '../../../src/apply/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import { Harness, resource } from './harness.ts';

let h: Harness;
let session: number;

beforeEach(() => {
  h = new Harness();
  ({ session } = h.ok({ type: 'openSession' }) as { session: number });
});

const create = (name: string): Command => ({ type: 'createResource', resource: resource(name) });
const code = (result: CommandResult) => (result.ok ? 'ok' : result.error.code);

describe('a request of a session', () => {
  it('has one effect; its retry gets the first answer, revision and all', () => {
    const first = h.do(create('a'), { session, n: 1 });
    h.ok(create('b'));
    const { revision } = h.state;
    expect(h.do(create('a'), { session, n: 1 })).toEqual(first);
    expect(h.do(create('other'), { session, n: 1 })).toEqual(first);
    expect(h.state.revision).toBe(revision);
    expect(h.state.resources.size).toBe(2);
  });

  it('that was refused stays refused', () => {
    h.ok(create('a'));
    expect(code(h.do(create('a'), { session, n: 1 }))).toBe('already_exists');
    h.ok({ type: 'deleteResource', kind: 'stream', name: 'a', expectedRevision: null });
    expect(code(h.do(create('a'), { session, n: 1 }))).toBe('already_exists');
    expect(code(h.do(create('a'), { session, n: 2 }))).toBe('ok');
  });

  it('may come out of order inside the window', () => {
    expect(code(h.do(create('b'), { session, n: 5 }))).toBe('ok');
    expect(code(h.do(create('a'), { session, n: 4 }))).toBe('ok');
  });

  it('below the window is session_expired and never run', () => {
    for (let n = 1; n <= SESSION_WINDOW + 1; n++)
      h.do({ type: 'setDrain', broker: 'x', drain: true }, { session, n });
    expect(code(h.do(create('a'), { session, n: 1 }))).toBe('session_expired');
    expect(code(h.do(create('a'), { session, n: 2 }))).toBe('not_found');
    expect(h.state.resources.size).toBe(0);
  });

  it('of an unknown session is session_expired and never run', () => {
    expect(code(h.do(create('a'), { session: session + 1, n: 1 }))).toBe('session_expired');
    expect(h.state.resources.size).toBe(0);
  });

  it('keeps its answer through a snapshot', () => {
    const first = h.do(create('a'), { session, n: 1 });
    const g = new Harness();
    g.machine.restore(h.machine.snapshot(), h.state.appliedIndex);
    expect(g.do(create('a'), { session, n: 1 })).toEqual(first);
  });
});

describe('sessions past their number', () => {
  it('push out the one unused the longest, a retry being use', () => {
    h.do(create('a'), { session, n: 1 });
    const { session: second } = h.ok({ type: 'openSession' }) as { session: number };
    for (let i = 0; i < MAX_SESSIONS - 2; i++) h.ok({ type: 'openSession' });
    expect(code(h.do(create('a'), { session, n: 1 }))).toBe('ok');
    h.ok({ type: 'openSession' });
    expect(code(h.do(create('a'), { session, n: 1 }))).toBe('ok');
    expect(code(h.do(create('b'), { session: second, n: 1 }))).toBe('session_expired');
  });

  it('are pushed out in the same order after a snapshot', () => {
    const sessions = [
      session,
      ...[1, 2, 3].map(() => (h.ok({ type: 'openSession' }) as { session: number }).session),
    ];
    for (const s of [sessions[2], sessions[0], sessions[3], sessions[1]])
      h.do(create('a'), { session: s ?? 0, n: 1 });
    const copy = new Machine(new ChangeRing());
    copy.restore(h.machine.snapshot(), h.state.appliedIndex);
    expect(copy.view.stateHash).toBe(h.state.stateHash);
    const at = h.log.length;
    for (let i = 0; i < MAX_SESSIONS - 2; i++) h.ok({ type: 'openSession' });
    applyAll(copy, h.log.slice(at));
    expect(copy.view.stateHash).toBe(h.state.stateHash);
    expect(code(h.do(create('a'), { session: sessions[2] ?? 0, n: 1 }))).toBe('session_expired');
    expect(code(h.do(create('a'), { session: sessions[3] ?? 0, n: 1 }))).toBe('already_exists');
  });
});
