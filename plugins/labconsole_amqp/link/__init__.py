"""The fast link: senders and receivers of encoded messages over AMQP 1.0, a few microseconds a message.

    with connect(endpoint) as connection:
        sender = Sender(connection, "queue")
        while sender.sent < total:
            sent = sender.send(template, total - sender.sent, first_number=sender.sent)
            sender.pump(0.1)
        sender.drain(timeout_s=10)

What makes it fast, and must stay so:

* proton opens, attaches and closes; frames with messages, credit and outcomes pass by it (`framed_engine`);
* messages are encoded once, frames included; per message only the delivery's id and tag, the stamp (`sent_time`) and
  the number (message id) are overwritten, by numpy for a chunk of rows, and the socket gets the rows themselves;
* frames that are alike are taken together, where they were read: numpy finds how many they are, checks and reads them;
* acknowledgements of successive messages are one range; credit is topped up each quarter of the window.

Times are `labconsole.clock.now_ns`. Links belong to the thread of their connection. Every fault is a UserError.
"""
