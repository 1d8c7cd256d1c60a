import { expect, test } from 'vitest';
import { LeaderRequests } from '../../raft/leader-requests.ts';

test('a transfer that another one follows, the leadership lost and won again between them, is answered', async () => {
  const requests = new LeaderRequests();
  const first = requests.addTransfer('n2', 1_000);
  requests.observe({ leaderId: null, leads: false, transferringTo: null });
  const second = requests.addTransfer('n3', 2_000);
  await expect(first).rejects.toMatchObject({ code: 'outcomeUnknown' });
  requests.observe({ leaderId: 'n3', leads: false, transferringTo: null });
  await second;
});
