// An ended job that a room above still needs: retention leaves it until the pin is gone.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";

export async function pinJob(tx: Tx, { seq }: { readonly seq: number }): Promise<void> {
  await tx.run(sql`insert into daybook_job_pin (job_seq) values (${seq}) on conflict do nothing`);
}

export async function unpinJob(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`delete from daybook_job_pin where job_seq = (select seq from daybook_job where id = ${id})`);
}
