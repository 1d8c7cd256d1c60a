import { describe, expect, it } from 'vitest';
import { Ledger } from './ledger.ts';

const AT = { offset: 0, epoch: 1, by: 'b1' };

function ledger(): { ledger: Ledger; failures: string[] } {
  const failures: string[] = [];
  return { ledger: new Ledger((text) => failures.push(text)), failures };
}

describe('the ledger of acknowledged records', () => {
  const found = (...values: string[]) => values.map((value, offset) => ({ offset, epoch: 1, value }));

  it('takes what is in place, with records between that nobody acknowledged', () => {
    const { ledger: subject, failures } = ledger();
    subject.acknowledge('s', AT, ['a', 'b']);
    subject.acknowledge('s', { ...AT, offset: 3 }, ['d']);
    subject.check('s', found('a', 'b', 'unknown', 'd', 'more'));
    expect(failures).toEqual([]);
  });

  it('names records that are missing, replaced or out of place', () => {
    const { ledger: subject, failures } = ledger();
    subject.acknowledge('s', AT, ['a', 'b', 'c']);
    subject.check('s', [
      { offset: 0, epoch: 2, value: 'other' },
      { offset: 2, epoch: 1, value: 'b' },
    ]);
    expect(failures).toEqual([
      's 0: acknowledged by b1, and holds another record now',
      's 1: the leader returned 2',
      's: 1 acknowledged records are missing, the first at 2',
    ]);
  });

  it('names an offset that is acknowledged twice', () => {
    const { ledger: subject, failures } = ledger();
    subject.acknowledge('s', AT, ['a', 'b']);
    subject.acknowledge('s', { offset: 1, epoch: 2, by: 'b2' }, ['b']);
    expect(failures).toEqual(['s 1: acknowledged by b1 in epoch 1 and by b2 in epoch 2']);
  });
});
