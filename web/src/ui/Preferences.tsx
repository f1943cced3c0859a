import { Checkbox, useMantineColorScheme } from "@mantine/core";
import { beep, notifications, sound } from "./announce";
import { Select } from "./Select";
import { SingleKeysSwitch } from "./SingleKeysSwitch";
import { useSetting } from "./setting";
import { schemes, schemeWords } from "./theme";
import { dayHours, ownZone, timeZone } from "./time";

/** How this browser shows pages to the person who uses it. */
export function Preferences() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const zone = useSetting(timeZone);
  const hours = useSetting(dayHours);
  return (
    <>
      <Select
        label="Theme"
        options={schemes.map((value) => ({ value, label: schemeWords[value] }))}
        value={colorScheme}
        onChange={setColorScheme}
      />
      <Select
        label="Time zone"
        options={[
          { value: "local", label: `this computer's (${ownZone()})` },
          { value: "utc", label: "UTC" },
        ]}
        value={zone}
        onChange={timeZone.set}
      />
      <Select
        label="Clock"
        options={[
          { value: "24", label: "24 hours" },
          { value: "12", label: "12 hours" },
        ]}
        value={hours}
        onChange={dayHours.set}
      />
      <SingleKeysSwitch />
      <Announcements />
    </>
  );
}

/** Both are off by default. The browser also asks before a page may notify. */
function Announcements() {
  const notified = useSetting(notifications) === "on";
  const sounds = useSetting(sound) === "on";
  const can = "Notification" in globalThis;
  return (
    <>
      <Checkbox
        size="xs"
        label="Notify of new alerts"
        description={
          can ? "From the browser, while a page of Tocsin is open." : "This browser does not support notifications."
        }
        disabled={!can}
        checked={notified}
        onChange={async (event) => {
          if (!event.currentTarget.checked) return notifications.set("off");
          if ((await Notification.requestPermission()) === "granted") notifications.set("on");
        }}
      />
      <Checkbox
        size="xs"
        label="Sound for new alerts"
        checked={sounds}
        onChange={(event) => {
          sound.set(event.currentTarget.checked ? "on" : "off");
          if (event.currentTarget.checked) beep();
        }}
      />
    </>
  );
}
