import { describe, expect, test } from 'vitest';
import { checkedLimits, RaftError, type Entry } from '../../raft/index.ts';
import { PendingProposals } from '../../raft/pending-proposals.ts';

const at = (index: number, term: number): Entry => ({
  index,
  term,
  kind: 'command',
  data: new Uint8Array(1),
});

function placed(pending: PendingProposals, index: number, term: number, deadlineMs = 100): Promise<unknown> {
  const answer = pending.add(new Uint8Array(10), deadlineMs).then(
    (applied) => applied.result,
    (error: RaftError) => error.code,
  );
  pending.place(term, () => index);
  return answer;
}

describe('pending proposals', () => {
  test('the apply of exactly (index, term) resolves', async () => {
    const pending = new PendingProposals(checkedLimits());
    const answer = placed(pending, 9, 2);
    pending.applied(at(8, 2), 'other');
    pending.applied(at(9, 2), 'own');
    expect(await answer).toBe('own');
    expect(pending.size).toBe(0);
  });

  test('another entry applied in its place proves that it was not committed', async () => {
    const pending = new PendingProposals(checkedLimits());
    const answer = placed(pending, 9, 2);
    pending.applied(at(9, 3), 'other');
    expect(await answer).toBe('notCommitted');
  });

  test('another entry only appended in its place proves nothing: an older copy may still commit', async () => {
    const pending = new PendingProposals(checkedLimits());
    const older = placed(pending, 9, 2);
    const newer = placed(pending, 9, 4);
    expect(await older).toBe('outcomeUnknown');
    pending.applied(at(9, 4), 'newer');
    expect(await newer).toBe('newer');
  });

  test('an error is made only where a proposal waits to be refused', async () => {
    const pending = new PendingProposals(checkedLimits());
    let made = 0;
    const refuse = (): void =>
      pending.refuseInbox(() => {
        made += 1;
        return new RaftError('notLeader', 'n2 leads', 'n2');
      });
    refuse();
    expect(made).toBe(0);
    const waiting = [1, 2].map(() => pending.add(new Uint8Array(0), 100));
    refuse();
    expect(made).toBe(1);
    for (const each of waiting) await expect(each).rejects.toMatchObject({ code: 'notLeader' });
    expect(pending.size).toBe(0);
  });

  test('a snapshot that goes past leaves the outcome open', async () => {
    const pending = new PendingProposals(checkedLimits());
    const [passed, after] = [placed(pending, 9, 2), placed(pending, 10, 2)];
    pending.skippedTo(9);
    expect(await passed).toBe('outcomeUnknown');
    pending.applied(at(10, 2), 'after');
    expect(await after).toBe('after');
  });

  test('deadlines pass for those in the log and for those that wait for it; sizes follow', async () => {
    const pending = new PendingProposals(checkedLimits());
    const inLog = placed(pending, 9, 2, 50);
    const waiting = pending.add(new Uint8Array(10), 60).catch((error: RaftError) => error.code);
    expect(pending.nextDeadlineMs).toBe(50);
    pending.expire(49);
    expect(pending.size).toBe(2);
    pending.expire(50);
    expect(await inLog).toBe('deadlineExceeded');
    expect(pending).toMatchObject({ size: 1, nextDeadlineMs: 60, inboxBytes: 10 });
    pending.expire(60);
    expect(await waiting).toBe('deadlineExceeded');
    expect(pending).toMatchObject({ size: 0, nextDeadlineMs: Infinity, inboxBytes: 0 });
  });
});
