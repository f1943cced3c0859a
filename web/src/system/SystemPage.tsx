import { Page } from "../app/Page";
import { IconHeart } from "../ui/icons";
import { Empty } from "../ui/states";

export function SystemPage() {
  return (
    <Page title="System">
      <Empty icon={IconHeart} title="The line above tells how Tocsin is doing" />
    </Page>
  );
}
