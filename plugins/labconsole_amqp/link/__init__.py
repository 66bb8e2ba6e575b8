"""The fast link: senders and receivers of encoded messages over AMQP 1.0, a few microseconds a message.

    with connect(endpoint) as connection:
        sender = Sender(connection, "queue")
        while sender.sent < total:
            sent = sender.send(template, total - sender.sent, first_number=sender.sent)
            sender.pump(0.1)
        sender.drain(timeout_s=10)

What makes it fast, and must stay so:

* messages are encoded once; per message only the stamp (`sent_time`) and the number (message id) are overwritten;
* delivery tags come from a prebuilt ring; a chunk of deliveries is written before the socket is touched;
* acknowledgements are read at the head of a deque, in the order of sending;
* messages are received into the rows of one reused array, in which numpy checks and reads a whole batch at once;
* credit is topped up each quarter of the window.

Times are `labconsole.clock.now_ns`. Links belong to the thread of their connection. Every fault is a UserError.
"""
